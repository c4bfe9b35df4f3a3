"""Admin calls about the settings of topics and brokers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from horolog.client.admin.admin_base import AdminBase, collect
from horolog.client.wire.versions import Versioned
from horolog.protocol.apis import ApiKey
from horolog.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from horolog.protocol.wire import Message


class Resource(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


SOURCES = {
    1: "topic",
    2: "broker, dynamic",
    3: "all brokers, dynamic",
    4: "broker, static",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
_SOURCE_STATIC, _SOURCE_DEFAULT = 4, 5


@dataclass(frozen=True, slots=True)
class Config:
    name: str
    value: str | None  # None: secret, or not set
    source: int  # a key of SOURCES; -1 unknown
    read_only: bool = False
    sensitive: bool = False
    documentation: str | None = None
    synonyms: tuple[tuple[str, str | None, int], ...] = ()  # (name, value, source), the effective one first

    @property
    def is_default(self) -> bool:
        return self.source == _SOURCE_DEFAULT


class ConfigAdmin(AdminBase):
    async def describe_configs(
        self,
        kind: str | Resource,
        name: str,
        keys: Iterable[str] | None = None,
        *,
        documentation: bool = False,
    ) -> dict[str, Config]:
        """The settings of a "topic", a "broker" (name: its id) or a "group" by key."""
        resource = _resource(kind)
        wanted = None if keys is None else list(keys)

        def build(version: int) -> Message:
            return DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(resource_type=resource, resource_name=name, configuration_keys=wanted)
                ],
                include_synonyms=version >= 1,
                include_documentation=documentation and version >= 3,
            )

        response = await self._ask(Versioned(ApiKey.DESCRIBE_CONFIGS, build), **_where(resource, name))
        found = collect(
            (_shown(each.resource_name), each.error_code, each.error_message, each) for each in response.results
        )
        return {each.name: _config(each) for result in found.values() for each in result.configs}

    async def alter_configs(
        self,
        kind: str | Resource,
        name: str,
        changes: Mapping[str, str | None],
        *,
        operation: Operation = Operation.SET,
        validate_only: bool = False,
    ) -> None:
        """Change these keys and leave the others; None resets a key to its default."""
        resource = _resource(kind)
        request = IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequestAlterConfigsResource(
                    resource_type=resource,
                    resource_name=name,
                    configs=[
                        IncrementalAlterConfigsRequestAlterableConfig(
                            name=key,
                            config_operation=Operation.DELETE if value is None else operation,
                            value=value,
                        )
                        for key, value in changes.items()
                    ],
                )
            ],
            validate_only=validate_only,
        )
        response = await self._ask(request, **_where(resource, name))
        collect((_shown(each.resource_name), each.error_code, each.error_message, None) for each in response.responses)


def _resource(kind: str | Resource) -> Resource:
    return kind if isinstance(kind, Resource) else Resource[kind.upper()]


def own_source(kind: str | Resource, name: str) -> int:
    """The source of settings that only this resource has; a broker without a name stands for all brokers."""
    resource = _resource(kind)
    if resource is Resource.BROKER:
        return 2 if name else 3
    return {Resource.TOPIC: 1, Resource.BROKER_LOGGER: 6, Resource.CLIENT_METRICS: 7, Resource.GROUP: 8}[resource]


def _shown(name: str) -> str:
    """What an error calls the resource."""
    return name or "all brokers"


def _where(resource: Resource, name: str) -> dict[str, Any]:
    """A broker's settings come from that broker."""
    own = resource in {Resource.BROKER, Resource.BROKER_LOGGER} and name.isdigit()
    return {"node_id": int(name)} if own else {}


def _config(each: DescribeConfigsResourceResult) -> Config:
    source = each.config_source
    if source < 0:
        source = _SOURCE_DEFAULT if each.is_default else _SOURCE_STATIC
    synonyms = tuple((synonym.name, synonym.value, synonym.source) for synonym in each.synonyms)
    return Config(each.name, each.value, source, each.read_only, each.is_sensitive, each.documentation, synonyms)
