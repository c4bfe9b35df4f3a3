"""The requests of Confluent's REST interface to a schema registry, each with its response; no I/O.

`ROUTES` has them all; a word in capitals stands for a part of the path. Bodies are JSON objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import unquote

from horolog.testing.schema_registry import (
    AVRO,
    DEFAULT_LEVEL,
    LEVELS,
    MODES,
    TYPES,
    RegistryError,
    Schema,
    SchemaRegistry,
    Version,
)


class RegistryRequest(NamedTuple):
    """A request: the parts of its path that were in capitals, its query and its body."""

    parts: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def subject(self) -> str:
        return self.parts.get("SUBJECT", "")

    def has(self, name: str) -> bool:
        return self.query.get(name, "").lower() == "true"


Route = Callable[[SchemaRegistry, RegistryRequest], Any]


def answer(
    registry: SchemaRegistry, method: str, path: str, query: Mapping[str, str], body: Any
) -> tuple[HTTPStatus, Any]:
    """The status and the JSON of a response, whatever was asked."""
    try:
        if not isinstance(body, dict):
            raise RegistryError(42201, "expected a JSON object")
        for shape, route in _COMPILED.get(method, ()):
            found = shape.fullmatch(path.rstrip("/") or "/")
            if found:
                parts = {name: unquote(text) for name, text in found.groupdict().items()}
                return HTTPStatus.OK, route(registry, RegistryRequest(parts, query, body))
        raise RegistryError(404, f"there is no {method} {path}")
    except RegistryError as error:
        return error.status, {"error_code": error.code, "message": str(error)}


def _described(schema: Schema) -> dict[str, Any]:
    """As the registry shows a schema: the type is left out for Avro."""
    found: dict[str, Any] = {"schema": schema.text}
    if schema.kind != AVRO:
        found["schemaType"] = schema.kind
    if schema.references:
        found["references"] = [one._asdict() for one in schema.references]
    return found


def _placed(name: str, version: Version) -> dict[str, Any]:
    return {"subject": name, "version": version.number, "id": version.id, **_described(version.schema)}


def _id(asked: RegistryRequest) -> int:
    if not asked.parts["ID"].isdecimal():
        raise RegistryError(404, f"{asked.parts['ID']} is not an id")
    return int(asked.parts["ID"])


def _places(registry: SchemaRegistry, asked: RegistryRequest) -> list[tuple[str, Version]]:
    """Where a schema is, by its id."""
    registry.schema(_id(asked))
    return [
        (name, one) for name, each in sorted(registry.subjects.items()) for one in each.present if one.id == _id(asked)
    ]


def _subjects(registry: SchemaRegistry, asked: RegistryRequest) -> list[str]:
    prefix, deleted = asked.query.get("subjectPrefix", ""), asked.has("deleted")
    return [
        name
        for name, each in sorted(registry.subjects.items())
        if name.startswith(prefix) and (deleted or each.present)
    ]


def _versions(registry: SchemaRegistry, asked: RegistryRequest) -> list[int]:
    if asked.has("deleted") and asked.subject in registry.subjects:
        return [one.number for one in registry.subjects[asked.subject].versions]
    return [one.number for one in registry.subject(asked.subject).present]


def _version(registry: SchemaRegistry, asked: RegistryRequest) -> Version:
    return registry.version(asked.subject, asked.parts["VERSION"], deleted=asked.has("deleted"))


def _register(registry: SchemaRegistry, asked: RegistryRequest) -> dict[str, Any]:
    if registry.mode in ("READONLY", "READONLY_OVERRIDE"):
        raise RegistryError(42205, f"Subject {asked.subject} is in read-only mode")
    return {"id": registry.register(asked.subject, registry.parsed(asked.body))}


def _look_up(registry: SchemaRegistry, asked: RegistryRequest) -> dict[str, Any]:
    registry.subject(asked.subject)
    return _placed(asked.subject, registry.lookup(asked.subject, registry.parsed(asked.body)))


def _delete_subject(registry: SchemaRegistry, asked: RegistryRequest) -> list[int]:
    permanent = asked.has("permanent")
    known = registry.subjects.get(asked.subject)
    if permanent and known is not None and known.present:
        raise RegistryError(40405, f"Subject '{asked.subject}' was not deleted first before being permanently deleted")
    some = known.versions if permanent and known is not None else registry.subject(asked.subject).present
    return registry.delete(asked.subject, some, permanent=permanent)


def _delete_version(registry: SchemaRegistry, asked: RegistryRequest) -> int:
    permanent = asked.has("permanent")
    version = registry.version(asked.subject, asked.parts["VERSION"], deleted=permanent)
    return registry.delete(asked.subject, [version], permanent=permanent)[0]


def _level(registry: SchemaRegistry, asked: RegistryRequest) -> dict[str, str]:
    if asked.subject and asked.subject not in registry.levels and not asked.has("defaultToGlobal"):
        raise RegistryError(40408, f"Subject '{asked.subject}' does not have subject-level compatibility configured")
    return {"compatibilityLevel": registry.level(asked.subject)}


def _set_level(registry: SchemaRegistry, asked: RegistryRequest) -> dict[str, str]:
    level = str(asked.body.get("compatibility", "")).upper()
    if level not in LEVELS:
        raise RegistryError(42203, f"Invalid compatibility level. Valid values are {', '.join(LEVELS)}")
    registry.levels[asked.subject] = level
    return {"compatibility": level}


def _forget_level(registry: SchemaRegistry, asked: RegistryRequest) -> dict[str, str]:
    before = registry.levels.pop(asked.subject, DEFAULT_LEVEL)
    return {"compatibilityLevel": before}


def _set_mode(registry: SchemaRegistry, asked: RegistryRequest) -> dict[str, str]:
    mode = str(asked.body.get("mode", "")).upper()
    if mode not in MODES:
        raise RegistryError(42204, f"Invalid mode. Valid values are {', '.join(MODES)}")
    registry.mode = mode
    return {"mode": mode}


def _compatible(registry: SchemaRegistry, asked: RegistryRequest) -> dict[str, Any]:
    """With one version, or with those that the level of the subject names."""
    schema, wanted = registry.parsed(asked.body), asked.parts.get("VERSION")
    against = None if wanted is None else registry.version(asked.subject, wanted)
    faults = registry.faults(asked.subject, schema, against)
    return {"is_compatible": not faults, **({"messages": faults} if asked.has("verbose") else {})}


ROUTES: Mapping[str, Route] = {
    "GET /": lambda _registry, _asked: {},
    "GET /schemas/types": lambda _registry, _asked: list(TYPES),
    "GET /schemas/ids/ID": lambda registry, asked: _described(registry.schema(_id(asked))),
    "GET /schemas/ids/ID/schema": lambda registry, asked: registry.schema(_id(asked)).text,
    "GET /schemas/ids/ID/subjects": lambda registry, asked: sorted({name for name, _ in _places(registry, asked)}),
    "GET /schemas/ids/ID/versions": lambda registry, asked: [
        {"subject": name, "version": one.number} for name, one in _places(registry, asked)
    ],
    "GET /subjects": _subjects,
    "POST /subjects/SUBJECT": _look_up,
    "DELETE /subjects/SUBJECT": _delete_subject,
    "GET /subjects/SUBJECT/versions": _versions,
    "POST /subjects/SUBJECT/versions": _register,
    "GET /subjects/SUBJECT/versions/VERSION": lambda registry, asked: _placed(asked.subject, _version(registry, asked)),
    "DELETE /subjects/SUBJECT/versions/VERSION": _delete_version,
    "GET /subjects/SUBJECT/versions/VERSION/schema": lambda registry, asked: _version(registry, asked).schema.text,
    "GET /subjects/SUBJECT/versions/VERSION/referencedby": lambda registry, asked: registry.referenced_by(
        asked.subject, _version(registry, asked).number
    ),
    "POST /compatibility/subjects/SUBJECT/versions": _compatible,
    "POST /compatibility/subjects/SUBJECT/versions/VERSION": _compatible,
    "GET /config": _level,
    "PUT /config": _set_level,
    "DELETE /config": _forget_level,
    "GET /config/SUBJECT": _level,
    "PUT /config/SUBJECT": _set_level,
    "DELETE /config/SUBJECT": _forget_level,
    "GET /mode": lambda registry, _asked: {"mode": registry.mode},
    "PUT /mode": _set_mode,
}


def _compiled() -> dict[str, list[tuple[re.Pattern[str], Route]]]:
    found: dict[str, list[tuple[re.Pattern[str], Route]]] = {}
    for line, route in ROUTES.items():
        method, _, path = line.partition(" ")
        shape = re.sub(r"/([A-Z]+)", r"/(?P<\1>[^/]+)", path)
        found.setdefault(method, []).append((re.compile(shape), route))
    return found


_COMPILED = _compiled()
