"""Requests and answers as plain data: a request is built from its fields, and an answer is shown without what every broker has otherwise.

In this data a topic's id is `#` and its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from horolog.protocol.apis import API
from horolog.protocol.records.head import heads_in
from horolog.protocol.wire import Message, Struct, StructType

UUID_BYTES = 16
OF_EACH_BROKER = {
    "authorized_operations",
    "cluster_id",
    "current_leader",
    "host",
    "log_dir",
    "node_endpoints",
    "port",
    "producer_id",
    "session_id",
    "throttle_time_ms",
    "topic_authorized_operations",
    "total_bytes",
    "usable_bytes",
}
TEXT = "TEXT"
"""Stands for any message that is not empty."""


def request_of(name: str, fields: Mapping[str, Any], ids: Mapping[str, bytes]) -> Message:
    (api,) = (each for each in API.values() if each.name == name)
    return _struct(api.request, fields, ids)  # type: ignore[return-value]


def _struct(kind: type[Struct], fields: Mapping[str, Any], ids: Mapping[str, bytes]) -> Struct:
    return kind(**{name: _value(kind.FIELDS[name].type, value, ids) for name, value in fields.items()})


def _value(declared: Any, value: Any, ids: Mapping[str, bytes]) -> Any:
    if isinstance(value, list):
        return [_value(declared.element, each, ids) for each in value]
    if isinstance(declared, StructType) and value is not None:
        return _struct(declared.struct, value, ids)
    if isinstance(value, str) and value.startswith("#"):
        return ids.get(value[1:], (value[1:] * UUID_BYTES)[:UUID_BYTES].encode())
    return value


def shown(answer: Any, names: Mapping[bytes, str]) -> Any:
    """An answer as it stands in the data, without fields that hold their default; `names` are those of the topics by id.

    Of records only whole batches count: Kafka fills up what it converted for old readers with the beginning of a batch.
    """
    if isinstance(answer, list | tuple):
        return [shown(each, names) for each in answer]
    if isinstance(answer, Struct):
        return {
            name: _shown_field(name, value, names)
            for name, declared in answer.FIELDS.items()
            if name not in OF_EACH_BROKER and (value := getattr(answer, name)) != declared.make_default()
        }
    return answer


def _shown_field(name: str, value: Any, names: Mapping[bytes, str]) -> Any:
    if name == "error_message":
        return TEXT if value else value
    if isinstance(value, str | list | tuple) or not hasattr(value, "__len__"):
        return shown(value, names)
    if name == "topic_id":
        return "#" + names.get(bytes(value), "?")
    if name == "records":
        return f"{sum(each.size_bytes for each in heads_in(value))} bytes"
    return f"{len(value)} bytes"


def parts(answer: Mapping[str, Any]) -> list[str]:
    """Each innermost part of an answer with what stands around it: equal for answers with the same parts in another order."""
    return sorted(_parts(answer))


def _parts(answer: Mapping[str, Any]) -> Iterator[str]:
    inner = {
        name: each for name, each in answer.items() if isinstance(each, list) and each and isinstance(each[0], dict)
    }
    own = json.dumps({name: each for name, each in answer.items() if name not in inner}, sort_keys=True)
    if not inner:
        yield own
    for name, elements in inner.items():
        for each in elements:
            for part in _parts(each):
                yield f"{own} {name} {part}"
