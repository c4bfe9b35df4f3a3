"""The topics that rows go to: they must exist, so that a misspelt name does not become a topic.

Spark's own connector leaves that to the broker, which creates a topic of any name that is written to if `auto.create.topics.enable` is on.
`createTopics=true` asks for that.
"""

from difflib import get_close_matches
from typing import TYPE_CHECKING

from horolog.pipeline.base.positions import OptionError

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

CREATE = "createTopics"


async def partitions_of_target(client: "Client", topic: str, *, create: bool) -> list[int]:
    """The partitions of a topic that is written to; OptionError if it does not exist and may not be created."""
    if not create and client.partitions_now(topic) is None:
        await require_topic(client, topic)
    return await client.topic(topic, create=create)


async def require_topic(client: "Client", topic: str) -> None:
    """Ask for the list of all topics, which creates none."""
    known = (await client.metadata()).topics
    if topic in known:
        return
    refused = await client.withheld(topic)
    if refused is not None:
        raise refused
    close = get_close_matches(topic, list(known), 1)
    meant = f"; do you mean {close[0]!r}?" if close else ";"
    raise OptionError(f"there is no topic {topic!r}{meant} {CREATE}=true creates it, if the broker allows that")
