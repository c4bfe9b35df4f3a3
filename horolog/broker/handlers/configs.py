"""DescribeConfigs 0 to 4, AlterConfigs 0 to 2, IncrementalAlterConfigs 0 to 1: settings of topics and of the broker.

- Topics: every key of `broker.config.topic_settings`; an override that is not allowed is INVALID_CONFIG. Changes take effect at once.
- Broker: named by its id, or by the empty name for the values that all brokers share (described: only those that were set
  there). Only keys that may change while running can be set; anything else is INVALID_REQUEST, as on real brokers.
- AlterConfigs replaces the whole set: a key that is not named returns to its default. IncrementalAlterConfigs sets, deletes, and adds to
  or takes from lists, starting from the value in effect.
- A topic that was found without its settings shows `horolog.settings.unknown`. Its settings are known from then on if that key,
  or one that decides over deletion, is set or deleted.
- A resource or a key twice in one request, a null value, an unknown operation: INVALID_REQUEST. An empty list of keys means all.
- `horolog.http.listen` shows the port in use if the setting leaves its choice to the system.
- v0's `is_default` is false.
- Groups: the keys of `broker.groups.group_settings`, whether the group exists or not; they take effect with its members' next heartbeats.
Not done: settings of client metrics and broker loggers (INVALID_REQUEST).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from typing import NamedTuple, TypeVar

from horolog.broker.cluster.cluster import Cluster, Edit, Overrides
from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.cluster.new_topics import check_name, unknown_topic
from horolog.broker.cluster.topic import Topic
from horolog.broker.config import topic_settings
from horolog.broker.config.listeners import HTTP_LISTEN, with_port
from horolog.broker.config.setting_types import ConfigEntry, ConfigSource, ConfigType, SettingsError
from horolog.broker.config.settings import Settings
from horolog.broker.coordination.keyed_queue import gather
from horolog.broker.groups import group_settings
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.on_record import stored_rules
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.stored_rules import Rules
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from horolog.protocol.messages.configs import IncrementalAlterConfigsRequestAlterConfigsResource as IncrementalResource
from horolog.protocol.messages.configs import (
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse as IncrementalResourceResponse,
)

ALL_BROKERS = ""


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    GROUP = 32


class Change(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


# -- DescribeConfigs


def describe_configs(
    broker: BrokerView,
    request: DescribeConfigsRequest,
    context: RequestContext,  # noqa: ARG001
) -> DescribeConfigsResponse:
    results = []
    known: dict[Hashable, list[DescribeConfigsResourceResult]] = {}  # most topics have no settings of their own
    for resource in request.resources:
        keys = dict.fromkeys(resource.configuration_keys or ()) or None
        try:
            owner = _owner(broker, resource)
            seen_as = owner, None if keys is None else tuple(keys)
            configs = known.get(seen_as)
            if configs is None:
                entries = _entries(broker, owner, keys)
                configs = [_config(each, request.include_synonyms, request.include_documentation) for each in entries]
                known[seen_as] = configs
        except ClusterError as error:
            message = "" if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else error.message  # as Kafka's
            results.append(_described(resource, error.code, message, []))
        else:
            results.append(_described(resource, ErrorCode.NONE, "", configs))
    return DescribeConfigsResponse(results=results)


def _described(
    resource: DescribeConfigsResource, code: ErrorCode, message: str, configs: list[DescribeConfigsResourceResult]
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


class Owner(NamedTuple):
    """The owner of a configuration: a broker, or a topic or group with settings of its own."""

    type: int
    node: str = ALL_BROKERS
    overrides: tuple[tuple[str, str], ...] = ()


def _owner(broker: BrokerView, resource: DescribeConfigsResource) -> Owner:
    """Raises ClusterError."""
    kind, name = resource.resource_type, resource.resource_name
    if kind == ResourceType.TOPIC:
        return Owner(kind, overrides=tuple(_topic(broker.cluster, name).overrides.items()))
    if kind == ResourceType.GROUP:
        return Owner(kind, overrides=tuple(_of_group(broker.cluster, name).items()))
    return Owner(kind, _node(broker, kind, name))


def _entries(broker: BrokerView, owner: Owner, keys: Collection[str] | None) -> list[ConfigEntry]:
    """The requested entries of one owner."""
    cluster, node = broker.cluster, owner.node
    if owner.type == ResourceType.TOPIC:
        return topic_settings.describe(dict(owner.overrides), cluster.settings, keys)
    if owner.type == ResourceType.GROUP:
        return group_settings.describe(dict(owner.overrides), cluster.settings, keys)
    if node != ALL_BROKERS:
        return [_as_bound(broker, entry) for entry in cluster.settings_of(node).describe(keys)]
    given = cluster.broker_configs.get(ALL_BROKERS, {})
    entries = cluster.settings.describe(key for key in given if keys is None or key in keys)
    return [_as_shared(entry, given[entry.name]) for entry in entries]


def _as_bound(broker: BrokerView, entry: ConfigEntry) -> ConfigEntry:
    """The port that the system has chosen, if it was to choose one: a client reads the setting in order to connect."""
    if entry.name != HTTP_LISTEN or entry.value is None:
        return entry
    return replace(entry, value=with_port(entry.value, broker.http_port))


def _as_shared(entry: ConfigEntry, value: str) -> ConfigEntry:
    """A key with the value that all brokers share, whatever value is in effect here."""
    return ConfigEntry(
        name=entry.name,
        value=None if entry.sensitive else value,
        source=ConfigSource.DYNAMIC_DEFAULT_BROKER,
        type=entry.type,
        read_only=entry.read_only,
        sensitive=entry.sensitive,
        documentation=entry.documentation,
        synonyms=tuple(s for s in entry.synonyms if s.source is ConfigSource.DYNAMIC_DEFAULT_BROKER),
    )


def _config(entry: ConfigEntry, with_synonyms: bool, with_documentation: bool) -> DescribeConfigsResourceResult:
    synonyms = []
    if with_synonyms:
        synonyms = [
            DescribeConfigsSynonym(name=each.name, value=None if entry.sensitive else each.value, source=each.source)
            for each in entry.synonyms
        ]
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=synonyms,
        config_type=entry.type,
        documentation=entry.documentation if with_documentation else None,
    )


def _topic(cluster: Cluster, name: str) -> Topic:
    check_name(name)
    topic = cluster.topics.get(name)
    if topic is None:
        raise unknown_topic(name)
    return topic


def _of_group(cluster: Cluster, name: str) -> Mapping[str, str]:
    """The settings that a group has been given; raises ClusterError."""
    if not name:
        raise _bad_request("Group name must not be empty")
    return group_settings.overrides_of(cluster.state.rules, name)


def _node(broker: BrokerView, resource_type: int, name: str) -> str:
    """The key of a broker's dynamic configuration; raises ClusterError for anything that is no broker of the cluster."""
    if resource_type != ResourceType.BROKER:
        raise _bad_request(f"this broker has no configuration of resources of type {resource_type}")
    if name != ALL_BROKERS and name not in map(str, broker.cluster.nodes):
        raise _bad_request(f"this is broker {broker.placement.me}, not {name[:100]}")
    return name


def _bad_request(message: str) -> ClusterError:
    return ClusterError(ErrorCode.INVALID_REQUEST, message)


# -- changes, common to both requests


@dataclass(frozen=True, slots=True)
class Alteration:
    """One resource, and how its overrides change."""

    type: int
    name: str
    edit: Edit


Outcome = dict[tuple[int, str], ClusterError | None]
"""The outcome for each resource, by type and name."""

Resource = AlterConfigsResource | IncrementalResource
AnyResource = TypeVar("AnyResource", AlterConfigsResource, IncrementalResource)
AnyAnswer = TypeVar("AnyAnswer", AlterConfigsResourceResponse, IncrementalResourceResponse)


def alter_configs(broker: BrokerView, request: AlterConfigsRequest, context: RequestContext) -> None:
    def done(outcome: Outcome) -> None:
        context.reply(AlterConfigsResponse(responses=_answers(outcome, AlterConfigsResourceResponse)))

    _alter(broker, request.resources, _replaced, done, validate_only=request.validate_only)


def incremental_alter_configs(
    broker: BrokerView, request: IncrementalAlterConfigsRequest, context: RequestContext
) -> None:
    def done(outcome: Outcome) -> None:
        context.reply(IncrementalAlterConfigsResponse(responses=_answers(outcome, IncrementalResourceResponse)))

    _alter(broker, request.resources, _changed, done, validate_only=request.validate_only)


def _alter(
    broker: BrokerView,
    resources: Sequence[AnyResource],
    edited: Callable[[Settings, AnyResource, Overrides], Overrides],
    done: Callable[[Outcome], None],
    *,
    validate_only: bool,
) -> None:
    """Check every resource, then carry out the allowed changes; `done` gets the errors by resource."""
    counts = Counter((each.resource_type, each.resource_name) for each in resources)
    outcome: Outcome = dict.fromkeys(counts)
    accepted: list[Alteration] = []
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        try:
            if counts[key] > 1:
                raise _bad_request("the request names this resource more than once")
            _check_keys(resource)
            alteration = Alteration(*key, partial(edited, broker.settings, resource))
            _check(broker.cluster, alteration, alteration.edit(_current(broker, resource)))
            accepted.append(alteration)
        except ClusterError as error:
            outcome[key] = error
    if validate_only:
        done(outcome)
    else:
        _carry_out(broker.cluster, accepted, outcome, done)


def _answers(outcome: Outcome, kind: type[AnyAnswer]) -> list[AnyAnswer]:
    return [
        kind(
            error_code=failure.code if failure else ErrorCode.NONE,
            error_message=failure.message if failure else None,
            resource_type=resource_type,
            resource_name=name,
        )
        for (resource_type, name), failure in outcome.items()
    ]


def _check_keys(resource: Resource) -> None:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise _bad_request("the request names a key of this resource more than once")


def _check(cluster: Cluster, alteration: Alteration, overrides: Overrides) -> None:
    if alteration.type == ResourceType.TOPIC:
        cluster.topic_config(overrides)
    elif alteration.type == ResourceType.GROUP:
        _check_group(cluster, overrides)
    else:
        cluster.check_broker_configs(alteration.name, overrides)


def _check_group(cluster: Cluster, overrides: Overrides) -> None:
    try:
        group_settings.check(overrides, cluster.settings)
    except SettingsError as error:
        raise ClusterError(ErrorCode.INVALID_CONFIG, str(error)) from error


def _carry_out(
    cluster: Cluster, accepted: Sequence[Alteration], outcome: Outcome, done: Callable[[Outcome], None]
) -> None:
    """Change topics together, then each broker, then groups together; `done` gets the outcome of all changes."""
    topics = {each.name: each.edit for each in accepted if each.type == ResourceType.TOPIC}
    groups = {each.name: each.edit for each in accepted if each.type == ResourceType.GROUP}
    brokers = [each for each in accepted if each.type == ResourceType.BROKER]
    changes = [partial(cluster.alter_broker_configs, each.name, each.edit) for each in brokers]
    keys = [[(each.type, each.name)] for each in brokers]
    if topics:
        changes.insert(0, partial(cluster.alter_topic_configs, topics))
        keys.insert(0, [(int(ResourceType.TOPIC), name) for name in topics])

    if groups:
        changes.append(partial(cluster.change_rules, partial(_groups_changed, cluster, groups)))
        keys.append([(int(ResourceType.GROUP), name) for name in groups])

    def made(errors: list[ClusterError | None]) -> None:
        for changed, error in zip(keys, errors, strict=True):
            if error is not None:
                outcome.update(dict.fromkeys(changed, error))
        done(outcome)

    gather(changes, made)


def _groups_changed(cluster: Cluster, edits: Mapping[str, Edit], rules: Rules) -> RulesChanged | ClusterError:
    """A group without settings of its own has no rule."""
    groups = {name: edit(group_settings.overrides_of(rules, name)) for name, edit in edits.items()}
    try:
        for overrides in groups.values():
            _check_group(cluster, overrides)
    except ClusterError as error:
        return error
    put = tuple(group_settings.rule_of(name, overrides) for name, overrides in groups.items() if overrides)
    return RulesChanged(
        put, frozenset((stored_rules.GROUP, name) for name, overrides in groups.items() if not overrides)
    )


def _required(key: str, value: str | None) -> str:
    if value is None:
        raise _bad_request(f"{key} has no value")
    return value


# -- AlterConfigs


def _replaced(_: Settings, resource: AlterConfigsResource, present: Overrides) -> Overrides:
    """The set that replaces the old one."""
    overrides = {config.name: _required(config.name, config.value) for config in resource.configs}
    if topic_settings.is_unknown(present) and topic_settings.SETTINGS_UNKNOWN not in overrides:
        return topic_settings.settled(topic_settings.as_unknown(overrides), overrides)
    return overrides


def _current(broker: BrokerView, resource: Resource) -> Mapping[str, str]:
    """The overrides that a resource has now; raises ClusterError if there is no such resource."""
    if resource.resource_type == ResourceType.TOPIC:
        if not resource.resource_name:
            raise _bad_request("a topic name is required: there is no configuration of all topics")
        return _topic(broker.cluster, resource.resource_name).overrides
    if resource.resource_type == ResourceType.GROUP:
        return _of_group(broker.cluster, resource.resource_name)
    node = _node(broker, resource.resource_type, resource.resource_name)
    return broker.cluster.broker_configs.get(node, {})


# -- IncrementalAlterConfigs


def _changed(settings: Settings, resource: IncrementalResource, present: Overrides) -> Overrides:
    """The old set with the changes made."""
    overrides = dict(present)
    is_topic = resource.resource_type == ResourceType.TOPIC
    for config in resource.configs:
        key = config.name
        if config.config_operation == Change.DELETE:
            overrides.pop(key, None)
            continue
        value = _required(key, config.value)
        if config.config_operation == Change.SET:
            overrides[key] = value
        elif config.config_operation in (Change.APPEND, Change.SUBTRACT):
            described = topic_settings.describe(overrides, settings, [key]) if is_topic else settings.describe([key])
            adding = config.config_operation == Change.APPEND
            overrides[key] = _with_words(key, described, value, adding=adding)
        else:
            raise _bad_request(f"{key}: there is no operation {config.config_operation}")
    return topic_settings.settled(overrides, [config.name for config in resource.configs]) if is_topic else overrides


def _with_words(key: str, described: Sequence[ConfigEntry], value: str, *, adding: bool) -> str:
    """The list of a key with words added or taken away; its order stays."""
    if not described:
        raise ClusterError(ErrorCode.INVALID_CONFIG, f"{key} is not a known setting")
    entry = described[0]
    if entry.type is not ConfigType.LIST:
        raise ClusterError(
            ErrorCode.INVALID_CONFIG, f"{key} is not a list: it cannot be appended to or subtracted from"
        )
    words = dict.fromkeys(_words(entry.value or ""))
    if adding:
        words |= dict.fromkeys(_words(value))
    else:
        for word in _words(value):
            words.pop(word, None)
    return ",".join(words)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
