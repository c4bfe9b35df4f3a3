"""What an embedded broker answers on its HTTP port."""

from horolog.client.segments.segments_look import HttpAccess
from horolog.client.wire.http_get import get


async def body_of(broker, path):
    return (await get(HttpAccess(broker.http), path, most_bytes=16 << 20)).body
