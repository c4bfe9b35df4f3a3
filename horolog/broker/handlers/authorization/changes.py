"""The changes that a request asks for, part by part, as the audit reports them: read from the request and the handler's answer.

Most answers name their parts themselves; `parts` reads those. Secrets are left out: settings that are passwords are reported by name
only, users by their mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from horolog.base.acl_types import Operation, PatternType, Permission, ResourceType
from horolog.base.acls import Acl
from horolog.broker.config import listener_keys
from horolog.broker.config.setting_types import ConfigType
from horolog.broker.config.settings import SPECS
from horolog.broker.groups import group_settings
from horolog.broker.handlers.config_resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from horolog.broker.security.audit import Part
from horolog.broker.security.sasl.scram_keys import BY_NUMBER
from horolog.protocol.wire import ArrayType, Struct, StructType

CONFIGURED: Final = {
    TOPIC: "topic",
    GROUP: "group",
    BROKER: "broker",
    BROKER_LOGGER: "broker-logger",
    CLIENT_METRICS: "client-metrics",
}
TOPIC_NAMES: Final = ("name", "topic", "topic_name")
PARTITIONS: Final = ("partition_index", "partition_id", "partition")
CONFIG_FORMS: Final = ("{}={}", "{} deleted", "{}+={}", "{}-={}")
"""By the number of the operation: set, delete, append, subtract."""
SHOWN_NAMES: Final = 100

Names = Mapping[str, Any]
"""The fields that name a part, including those of the parts around it."""


@dataclass(frozen=True, slots=True)
class ChangingApi:
    """An API that changes things: its operation in access lists, and the resources that a request changes."""

    operation: Operation
    parts_of: Callable[[Any, Any], Iterator[Part]]


def parts(_: Any, answer: Any) -> Iterator[Part]:
    """Each part of an answer that has an error code of its own; the whole answer if none has."""
    return (Part(_resource(names), code) for names, code in _walk(answer, {}))


def _walk(struct: Struct, around: Names) -> Iterator[tuple[Names, int]]:
    fields = _fields(struct)
    names = {**around, **{name: value for name, value in fields.items() if not isinstance(value, list)}}
    has_parts = False
    for name, declared in struct.FIELDS.items():
        if isinstance(declared.type, ArrayType) and isinstance(declared.type.element, StructType):
            for each in fields[name] or ():
                for one in _walk(each, names):
                    has_parts = True
                    yield one
    code = fields.get("error_code")
    if code is not None and (code or not has_parts):
        yield names, code


def _resource(names: Names) -> str:
    if "resource_type" in names:
        return f"{CONFIGURED.get(names['resource_type'], 'unknown')}:{names['resource_name']}"
    for kind in ("group_id", "user"):
        if kind in names:
            return f"{kind.removesuffix('_id')}:{names[kind]}"
    topic = next((names[one] for one in TOPIC_NAMES if names.get(one) is not None), None)
    if topic is None:
        return f"topic-id:{names['topic_id'].hex()}" if "topic_id" in names else ""
    index = next((names[one] for one in PARTITIONS if one in names), None)
    return f"topic:{topic}" if index is None else f"partition:{topic}-{index}"


# -- topics


def _partitions(count: int) -> str:
    return f"{count} partition{'' if count == 1 else 's'}"


def created_topics(request: Any, answer: Any) -> Iterator[Part]:
    wanted = {each.name: each for each in request.topics}
    for each in answer.topics:
        asked = wanted[each.name]
        configs = [_config(TOPIC, one.name, one.value) for one in asked.configs]
        count = _partitions(len(asked.assignments) or asked.num_partitions)
        yield Part(f"topic:{each.name}", each.error_code, _listed([count, *configs]))


def grown_topics(request: Any, answer: Any) -> Iterator[Part]:
    counts = {each.name: each.count for each in request.topics}
    for each in answer.results:
        yield Part(f"topic:{each.name}", each.error_code, _partitions(counts[each.name]))


def cut_partitions(_: Any, answer: Any) -> Iterator[Part]:
    for topic in answer.topics:
        for each in topic.partitions:
            detail = "" if each.error_code else f"begins at {each.low_watermark}"
            yield Part(f"partition:{topic.name}-{each.partition_index}", each.error_code, detail)


def forgotten_offsets(request: Any, answer: Any) -> Iterator[Part]:
    told = f"group:{request.group_id}"
    for part in parts(request, answer):
        yield Part(told, part.code, part.resource)


# -- configurations


def configs(request: Any, answer: Any) -> Iterator[Part]:
    """AlterConfigs and IncrementalAlterConfigs."""
    asked = {(each.resource_type, each.resource_name): each.configs for each in request.resources}
    for each in answer.responses:
        changed = [
            _config(each.resource_type, one.name, one.value, getattr(one, "config_operation", 0))
            for one in asked[each.resource_type, each.resource_name]
        ]
        yield Part(_resource(_fields(each)), each.error_code, _listed(changed))


def _fields(struct: Struct) -> Names:
    return {name: getattr(struct, name) for name in struct.FIELDS}


def _config(resource_type: int, name: str, value: str | None, operation: int = 0) -> str:
    if value is None or _may_be_secret(resource_type, name):
        return name
    return CONFIG_FORMS[operation if 0 <= operation < len(CONFIG_FORMS) else 0].format(name, value)


def _may_be_secret(resource_type: int, name: str) -> bool:
    """Topics have no passwords. For groups and brokers, only the values of known keys that are no passwords are reported."""
    if resource_type == TOPIC:
        return False
    if resource_type == GROUP:
        return name not in group_settings.ROWS
    spec = listener_keys.find(name, SPECS)
    return spec is None or spec.type is ConfigType.PASSWORD


def _listed(words: list[str]) -> str:
    """The first `SHOWN_NAMES` of them."""
    return ", ".join(words[:SHOWN_NAMES])


def feature_levels(request: Any, answer: Any) -> Iterator[Part]:
    """All features of a request are refused for the same reason, or none is."""
    for each in request.feature_updates:
        yield Part(f"feature:{each.feature}", answer.error_code, f"level {each.max_version_level}")


def unregistered_broker(request: Any, answer: Any) -> Iterator[Part]:
    yield Part(f"broker:{request.broker_id}", answer.error_code, "unregistered")


# -- rules


def _rule(each: Any, pattern_type: int) -> tuple[str, str]:
    """The resource that a rule of an access list applies to, and the rule."""
    acl = Acl(
        ResourceType(each.resource_type),
        each.resource_name,
        PatternType(pattern_type),
        each.principal,
        each.host,
        Operation(each.operation),
        Permission(each.permission_type),
    )
    return f"{acl.resource_type.name.lower()}:{acl.name}", str(acl)


def created_rules(request: Any, answer: Any) -> Iterator[Part]:
    for asked, each in zip(request.creations, answer.results, strict=False):
        resource, rule = _rule(asked, asked.resource_pattern_type)
        yield Part(resource, each.error_code, rule)


def removed_rules(_: Any, answer: Any) -> Iterator[Part]:
    """A filter that chose nothing has changed nothing; one that could not be used is reported."""
    for result in answer.filter_results:
        if result.error_code:
            yield Part("", result.error_code)
        for each in result.matching_acls:
            resource, rule = _rule(each, each.pattern_type)
            yield Part(resource, each.error_code, rule)


def users(request: Any, answer: Any) -> Iterator[Part]:
    """Which of a user's keys were set or removed, without the keys."""
    asked: dict[str, list[str]] = {}
    for each in request.deletions:
        asked.setdefault(each.name, []).append(f"{_mechanism(each.mechanism)} removed")
    for each in request.upsertions:
        asked.setdefault(each.name, []).append(f"{_mechanism(each.mechanism)} set")
    for each in answer.results:
        yield Part(f"user:{each.user}", each.error_code, _listed(asked.get(each.user, [])))


def _mechanism(number: int) -> str:
    kind = BY_NUMBER.get(number)
    return "unknown mechanism" if kind is None else kind.name


def created_token(request: Any, answer: Any) -> Iterator[Part]:
    """A token without its HMAC; a refused one has no id."""
    owner = f"{answer.principal_type}:{answer.principal_name}"
    renewers = [f"{one.principal_type}:{one.principal_name}" for one in request.renewers]
    detail = f"of {owner}" + (f", renewed by {_listed(renewers)}" if renewers else "")
    yield Part(f"delegation_token:{answer.token_id}", answer.error_code, detail)


def quotas(request: Any, answer: Any) -> Iterator[Part]:
    asked = {
        _entity(each): [one.key if one.remove else f"{one.key}={one.value}" for one in each.ops]
        for each in request.entries
    }
    for each in answer.entries:
        entity = _entity(each)
        yield Part(f"quota:{entity}", each.error_code, _listed(asked.get(entity, [])))


def _entity(entry: Any) -> str:
    parts = sorted((one.entity_type, one.entity_name or "<default>") for one in entry.entity)
    return ",".join(f"{kind}={name}" for kind, name in parts)
