"""Asks horolog over HTTP what a topic's segments hold; finds the address by Kafka's protocol unless one is given.

The response counts only if it has the same topic id: an address like 127.0.0.1 may lead to another broker from here. A token
is sent only to a given address, and to the broker's own host.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from horolog.client.segments.segments import TopicSegments, parse

if TYPE_CHECKING:
    from horolog.client.admin.admin_configs import ConfigAdmin
    from horolog.client.wire.cluster_view import Node, TopicView

LISTEN, PROTOCOL = "horolog.http.listen", "horolog.http.protocol"
TOKEN_VARIABLE = "HOROLOG_HTTP_TOKEN"  # noqa: S105 - the name of a variable
DEFAULT_TIMEOUT_MS = 5000
TIMES_AT_ONCE = 1000
NO_LEADER = -1
MOST_BYTES = 32 << 20
ANY_HOST = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared with, not bound
KAFKA = "Kafka does not expose its segments"
NO_PORT = f"the broker has no HTTP port that lists its segments ({LISTEN})"
HIDDEN = "the broker does not show this user where its HTTP port is"
_SEEN, _REFUSED, _MISSING = 200, 401, 404


class NoSegments(Exception):
    """The segments are not available; the message is a sentence that says why."""


class HttpUrlError(ValueError):
    """The address is invalid; the message says why, without what may be a secret in it."""


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """Raises HttpUrlError if the address is invalid."""

    url: str | None = None
    """None: found by the broker's settings."""
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS

    def __post_init__(self) -> None:
        if self.url is not None:
            try:
                parts = urlsplit(self.url)
                is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
            except ValueError:
                is_whole = False
            if not is_whole or parts.username is not None or any(ord(one) < 33 for one in self.url):
                raise HttpUrlError(
                    "expected http://HOST:PORT or https://HOST:PORT as the address of a broker's HTTP port"
                )
        if self.token is not None and not (self.token and all(32 < ord(one) < 127 for one in self.token)):
            raise HttpUrlError("a token can contain only printable characters, and no blanks")

    @property
    def scheme(self) -> str:
        return urlsplit(self.url or "").scheme

    @property
    def host(self) -> str:
        return urlsplit(self.url or "").hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.url or "").port or (443 if self.scheme == "https" else 80)

    @property
    def path(self) -> str:
        return urlsplit(self.url or "").path.rstrip("/")

    @property
    def authorization(self) -> str | None:
        return None if self.token is None else f"Bearer {self.token}"


async def find(admin: "ConfigAdmin", given: HttpAccess) -> HttpAccess:
    """The access to use: the first broker's, unless an address is given. Raises NoSegments."""
    if given.url is not None:
        return given
    nodes = await _nodes(admin)
    return await _of_node(admin, nodes[min(nodes)], given)


async def find_each(admin: "ConfigAdmin", given: HttpAccess, only: Collection[int] = ()) -> dict[int, HttpAccess]:
    """The access of each broker, or of some, by its number, as it reports it; workers share one. Raises NoSegments if one has none."""
    nodes = await _nodes(admin)
    wanted = nodes.keys() & only or nodes
    return {number: await _of_node(admin, nodes[number], given) for number in sorted(wanted)}


async def _nodes(admin: "ConfigAdmin") -> "dict[int, Node]":
    """The brokers, if they may have such a port. Raises NoSegments."""
    from horolog.client.values.errors import KafkaError
    from horolog.protocol.apis import ApiKey

    client = admin.client
    try:
        if not (await client.versions()).serves(ApiKey.DESCRIBE_CONFIGS, 0):
            raise NoSegments("this broker does not expose its segments")
        return client.view.nodes or (await client.metadata([])).nodes
    except KafkaError as error:
        raise NoSegments(HIDDEN) from error


async def _of_node(admin: "ConfigAdmin", node: "Node", given: HttpAccess) -> HttpAccess:
    from horolog.client.values.errors import KafkaError

    try:
        settings = await admin.describe_configs("broker", str(node.id), (LISTEN, PROTOCOL))
    except (KafkaError, ValueError) as error:
        raise NoSegments(HIDDEN) from error
    if LISTEN not in settings:
        raise NoSegments(KAFKA)
    listen = settings[LISTEN].value
    if not listen:
        raise NoSegments(NO_PORT)
    scheme = "https" if PROTOCOL in settings and settings[PROTOCOL].value == "HTTPS" else "http"
    return _found(listen, scheme, node, given)


def _found(listen: str, scheme: str, node: "Node", given: HttpAccess) -> HttpAccess:
    """The address from the broker's settings and the host where it was reached."""
    told, _, port = listen.rpartition(":")
    told = told.strip("[]")
    host = node.host if told in ANY_HOST else told
    token = given.token if host == node.host else None
    try:
        shown = f"[{host}]" if ":" in host else host
        return HttpAccess(f"{scheme}://{shown}:{port}", token, given.ca_file, given.timeout_ms)
    except HttpUrlError as error:
        raise NoSegments("the broker reports an invalid HTTP port") from error


async def ask(
    access: HttpAccess, topic: "TopicView", partitions: Sequence[int] = (), times: Sequence[int] = ()
) -> TopicSegments:
    """The segments of some partitions (all if none is named), and the bytes before up to `TIMES_AT_ONCE` times. Raises NoSegments."""
    from horolog.client.wire.http_get import NoAnswer, get
    from horolog.protocol.uuids import show_uuid

    words = [f"partition={','.join(map(str, partitions))}"] if partitions else []
    if times:
        words.append(f"at={','.join(str(max(one, 0)) for one in times)}")
    where = f"the broker's HTTP port, {access.host}:{access.port},"
    try:
        answer = await get(access, f"/log/{quote(topic.name)}?{'&'.join(words)}".rstrip("?"), most_bytes=MOST_BYTES)
    except NoAnswer as error:
        raise NoSegments(f"{where} {error}") from error
    if answer.status == _REFUSED:
        raise NoSegments(f"{where} requires a token ({TOKEN_VARIABLE})")
    if answer.status == _MISSING:
        raise NoSegments(f"{where} does not know this topic, or is older than this page")
    if answer.status != _SEEN:
        raise NoSegments(f"{where} refuses the request: HTTP {answer.status}")
    try:
        found = parse(answer.body, len(times))
    except ValueError as error:
        raise NoSegments(f"{where} sent an unexpected response: {error}") from error
    if any(topic.id) and found.id != show_uuid(topic.id):
        raise NoSegments(f"{where} belongs to another cluster")
    return found


async def ask_each(
    accesses: Iterable[HttpAccess], topic: "TopicView", partitions: Sequence[int] = (), times: Sequence[int] = ()
) -> TopicSegments:
    """What these brokers list together, each the partitions that it leads. Raises NoSegments."""
    answers = await asyncio.gather(*(ask(one, topic, partitions, times) for one in dict.fromkeys(accesses)))
    listed = {index: found for answer in answers for index, found in answer.partitions.items()}
    return answers[0]._replace(partitions=listed)


def leaders_of(topic: "TopicView", partitions: Sequence[int] = ()) -> set[int]:
    """The brokers that lead these partitions, or any if none is named."""
    wanted = partitions or topic.partitions
    leaders = {topic.partitions[index].leader for index in wanted if index in topic.partitions}
    return leaders - {NO_LEADER}


async def look(
    admin: "ConfigAdmin",
    topic: "TopicView",
    given: HttpAccess | None = None,
    *,
    partitions: Sequence[int] = (),
    times: Sequence[int] = (),
) -> TopicSegments:
    """Ask the leaders, each at the address that it reports, or the given address alone. Raises NoSegments."""
    given = given or HttpAccess()
    if given.url is not None:
        return await ask(given, topic, partitions, times)
    found = await find_each(admin, given, leaders_of(topic, partitions))
    return await ask_each(found.values(), topic, partitions, times)
