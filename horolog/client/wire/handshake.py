"""Finds out on a new connection which versions the broker serves: brokers of every age, even those without ApiVersions."""

from collections.abc import Awaitable, Callable

from horolog.client.values.errors import ConnectionFailed, check
from horolog.client.wire.connection import Connection
from horolog.client.wire.versions import OLD_BROKER, BrokerVersions, versions_from
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SOFTWARE_NAME = "horolog"
_API = API[ApiKey.API_VERSIONS]

Connect = Callable[[], Awaitable[Connection]]


async def open_connection(
    connect: Connect, software_version: str, timeout_ms: float
) -> tuple[Connection, BrokerVersions]:
    """A connection and its broker's versions.

    A broker that does not know the newest ApiVersions answers in v0, from 2.4 on with its ranges. One before 0.10 closes the
    connection: then the oldest version is tried, and if that closes a connection too, the broker is taken to be older than 0.10.
    """
    question = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=software_version)
    connection = await connect()
    try:
        response = await _ask(connection, question, _API.max_version, timeout_ms)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            response = await _ask(connection, question, _newest_of(response), timeout_ms)
    except ConnectionFailed:
        return await _open_old(connect, question, timeout_ms)
    except BaseException:
        connection.close()
        raise
    return _settled(connection, response)


async def _open_old(
    connect: Connect, question: ApiVersionsRequest, timeout_ms: float
) -> tuple[Connection, BrokerVersions]:
    connection = await connect()
    try:
        response = await _ask(connection, question, 0, timeout_ms)
    except ConnectionFailed:
        return await connect(), OLD_BROKER
    except BaseException:
        connection.close()
        raise
    return _settled(connection, response)


def _settled(connection: Connection, response: ApiVersionsResponse) -> tuple[Connection, BrokerVersions]:
    try:
        check(response.error_code)
    except BaseException:
        connection.close()
        raise
    return connection, versions_from(response)


def _newest_of(refusal: ApiVersionsResponse) -> int:
    ranges = versions_from(refusal).ranges
    return min(_API.max_version - 1, ranges.get(ApiKey.API_VERSIONS, (0, 0))[1])


async def _ask(
    connection: Connection, question: ApiVersionsRequest, version: int, timeout_ms: float
) -> ApiVersionsResponse:
    response: ApiVersionsResponse = await connection.request(_API, version, question, timeout_ms)
    return response
