"""Which version of an API to speak with a broker, and requests whose form depends on it: pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from horolog.client.values.errors import UnsupportedVersion
from horolog.protocol.apis import API, NEVER, Api, ApiKey
from horolog.protocol.messages.api_versions import ApiVersionsResponse
from horolog.protocol.wire import Message

NEWEST_SPOKEN: Final[dict[int, int]] = {
    # Later versions name topics by id, and let the broker add partitions to transactions.
    ApiKey.PRODUCE: 11,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    # Later versions are for brokers, or for transactions that bump the epoch at every end.
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.TXN_OFFSET_COMMIT: 4,
    ApiKey.END_TXN: 4,
    ApiKey.INIT_PRODUCER_ID: 5,
}

# Brokers before 0.10 close the connection on ApiVersions. These versions are understood by 0.8.2 and 0.9.
BEFORE_API_VERSIONS: Final[dict[int, tuple[int, int]]] = {
    ApiKey.PRODUCE: (0, 0),
    ApiKey.FETCH: (0, 0),
    ApiKey.LIST_OFFSETS: (0, 0),
    ApiKey.METADATA: (0, 0),
    ApiKey.OFFSET_COMMIT: (0, 1),
    ApiKey.OFFSET_FETCH: (0, 1),
    ApiKey.FIND_COORDINATOR: (0, 0),
    ApiKey.JOIN_GROUP: (0, 0),
    ApiKey.HEARTBEAT: (0, 0),
    ApiKey.LEAVE_GROUP: (0, 0),
    ApiKey.SYNC_GROUP: (0, 0),
    ApiKey.DESCRIBE_GROUPS: (0, 0),
    ApiKey.LIST_GROUPS: (0, 0),
}


@dataclass(frozen=True, slots=True)
class BrokerVersions:
    """The versions that one broker serves."""

    ranges: dict[int, tuple[int, int]]
    features: dict[str, int] = field(default_factory=dict)
    told: bool = True  # False: the broker does not know ApiVersions, the ranges are assumed

    def serves(self, key: ApiKey, version: int = 0) -> bool:
        """Whether the broker serves this version of the API or a newer one."""
        return key in self.ranges and self.ranges[key][1] >= version

    def choose(self, api: Api, at_least: int = 0, at_most: int = NEVER) -> int:
        """The newest version that both sides speak within the bounds."""
        if api.key not in self.ranges:
            raise UnsupportedVersion(f"the broker does not serve {api.name}")
        lowest, highest = self.ranges[api.key]
        newest = min(highest, api.max_version, NEWEST_SPOKEN.get(api.key, NEVER), at_most)
        oldest = max(lowest, api.min_version, at_least)
        if newest < oldest:
            raise UnsupportedVersion(
                f"the broker serves {api.name} v{lowest} to v{highest}, "
                f"but v{max(api.min_version, at_least)} "
                f"to v{min(api.max_version, NEWEST_SPOKEN.get(api.key, NEVER), at_most)} is required"
            )
        return newest


class Versioned(NamedTuple):
    """A request whose form depends on the negotiated version; `build` makes it for one."""

    key: ApiKey
    build: Callable[[int], Message]


Request = Message | Versioned

OLD_BROKER: Final = BrokerVersions(BEFORE_API_VERSIONS, told=False)

_BY_REQUEST: dict[str, Api] = {f"{api.name}Request": api for api in API.values()}


def api_of(request_name: str) -> Api:
    """The API of a request by the name of its class."""
    return _BY_REQUEST[request_name]


def versions_from(response: ApiVersionsResponse) -> BrokerVersions:
    return BrokerVersions(
        {each.api_key: (each.min_version, each.max_version) for each in response.api_keys},
        {each.name: each.max_version_level for each in response.finalized_features},
    )
