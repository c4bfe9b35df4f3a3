"""A schema registry in memory, with the REST interface of Confluent's: what a request changes, and its response; no I/O.

It has subjects, versions, ids, references, compatibility of Avro schemas, soft and permanent deletion. One schema has one id in
all subjects. The compatibility of JSON and Protobuf schemas is not checked: each new one is taken as compatible.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple

from horolog.client.decoding import DecodingError
from horolog.testing.avro_compatibility import AvroTypes, incompatibilities

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
TYPES = (JSON, PROTOBUF, AVRO)
LATEST = ("latest", "-1")
LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
DEFAULT_LEVEL = "BACKWARD"
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT")


class RegistryError(Exception):
    """A response with an error: Confluent's code, whose first three digits are the HTTP status, and a sentence."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> HTTPStatus:
        return HTTPStatus(self.code // 100 if self.code > 999 else self.code)


class Reference(NamedTuple):
    """Another schema that one uses: the name in its text, and its place in the registry."""

    name: str
    subject: str
    version: int


class Schema(NamedTuple):
    kind: str
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(slots=True)
class Version:
    number: int
    id: int
    schema: Schema
    is_deleted: bool = False


@dataclass(slots=True)
class Subject:
    versions: list[Version] = field(default_factory=list)

    @property
    def present(self) -> list[Version]:
        return [one for one in self.versions if not one.is_deleted]


class SchemaRegistry:
    """The subjects and schemas, and the request for each."""

    def __init__(self) -> None:
        self.subjects: dict[str, Subject] = {}
        self.ids: dict[Schema, int] = {}
        self.levels: dict[str, str] = {}
        """Compatibility by subject; the empty name stands for all that have none of their own."""
        self.mode = MODES[0]

    def __repr__(self) -> str:
        return f"<SchemaRegistry with {len(self.subjects)} subjects, {len(self.ids)} schemas>"

    # -- schemas

    def schema(self, number: int) -> Schema:
        found = next((schema for schema, known in self.ids.items() if known == number), None)
        if found is None:
            raise RegistryError(40403, f"Schema {number} not found.")
        return found

    def subject(self, name: str) -> Subject:
        found = self.subjects.get(name)
        if found is None or not found.present:
            raise RegistryError(40401, f"Subject '{name}' not found.")
        return found

    def version(self, name: str, wanted: str, *, deleted: bool = False) -> Version:
        """A version by its number or as the latest."""
        subject = self.subjects.get(name) if deleted else self.subject(name)
        if subject is None:
            raise RegistryError(40401, f"Subject '{name}' not found.")
        known = subject.versions if deleted else subject.present
        if wanted in LATEST:
            return known[-1]
        if not wanted.isdecimal() or int(wanted) < 1:
            raise RegistryError(42202, f"The specified version '{wanted}' is not a valid version id.")
        found = next((one for one in known if one.number == int(wanted)), None)
        if found is None:
            raise RegistryError(40402, f"Version {wanted} not found.")
        return found

    def lookup(self, name: str, schema: Schema) -> Version:
        found = next((one for one in self.subject(name).present if one.schema == schema), None)
        if found is None:
            raise RegistryError(40403, "Schema not found")
        return found

    def register(self, name: str, schema: Schema) -> int:
        """The id of the schema, which becomes the latest version of the subject unless it has it."""
        subject = self.subjects.get(name, Subject())
        for one in subject.present:
            if one.schema == schema:
                return one.id
        faults = self.faults(name, schema)
        if faults:
            raise RegistryError(409, f"Schema being registered is incompatible with an earlier schema: {faults[0]}")
        number = self.ids.setdefault(schema, len(self.ids) + 1)
        after = subject.versions[-1].number + 1 if subject.versions else 1
        subject.versions.append(Version(after, number, schema))
        self.subjects[name] = subject
        return number

    def delete(self, name: str, versions: Iterable[Version], *, permanent: bool) -> list[int]:
        """The numbers of the deleted versions. Only deleted ones can be removed for good."""
        some = list(versions)
        used = [one.number for one in some if self.referenced_by(name, one.number)]
        if used:
            raise RegistryError(42206, f"One or more references exist to the schema {name} version {used[0]}")
        if permanent:
            if not all(one.is_deleted for one in some):
                raise RegistryError(
                    40407, f"Version of subject '{name}' was not deleted first before being permanently deleted"
                )
            left = [one for one in self.subjects[name].versions if one not in some]
            if left:
                self.subjects[name].versions = left
            else:
                del self.subjects[name]
        for one in some:
            one.is_deleted = True
        return [one.number for one in some]

    def referenced_by(self, name: str, number: int) -> list[int]:
        return [
            known
            for schema, known in self.ids.items()
            if any((one.subject, one.version) == (name, number) for one in schema.references)
            and any(one.id == known for each in self.subjects.values() for one in each.present)
        ]

    # -- compatibility

    def level(self, name: str) -> str:
        return self.levels.get(name) or self.levels.get("") or DEFAULT_LEVEL

    def faults(self, name: str, schema: Schema, against: Version | None = None) -> list[str]:
        """Why a new schema is not compatible with the versions that its subject's level names, or with one of them."""
        level, present = self.level(name), self.subjects.get(name, Subject()).present
        if level == "NONE" or not present:
            return []
        compared = [against] if against is not None else present if level.endswith("_TRANSITIVE") else present[-1:]
        return [fault for one in reversed(compared) for fault in self._faults_between(level, schema, one.schema)]

    def _faults_between(self, level: str, new: Schema, old: Schema) -> list[str]:
        if new.kind != old.kind:
            return [f"{new.kind} is not {old.kind}"]
        if new.kind != AVRO:
            return []
        fresh, former = self._types(new), self._types(old)
        backward = incompatibilities(fresh, former) if level.startswith(("BACKWARD", "FULL")) else []
        forward = incompatibilities(former, fresh) if level.startswith(("FORWARD", "FULL")) else []
        return backward + forward

    def _types(self, schema: Schema) -> AvroTypes:
        return AvroTypes(json.loads(schema.text), tuple(map(json.loads, self.referenced(schema).values())))

    # -- what a request brings

    def referenced(self, schema: Schema) -> dict[str, str]:
        """The texts of referenced schemas by the names that this one uses, dependencies first."""
        found: dict[str, str] = {}
        for one in schema.references:
            other = self.version(one.subject, str(one.version), deleted=True).schema
            found |= self.referenced(other)
            found[one.name] = other.text
        return found

    def parsed(self, body: Mapping[str, Any]) -> Schema:
        """The schema of a request, in the form in which it is compared and returned. Raises RegistryError."""
        kind, text = body.get("schemaType") or AVRO, body.get("schema")
        if kind not in TYPES:
            raise RegistryError(422, f"Invalid schema type {kind}. Supported schema types are {', '.join(TYPES)}")
        if not isinstance(text, str) or not text.strip():
            raise RegistryError(42201, "Empty schema")
        try:
            references = tuple(
                Reference(str(one["name"]), str(one["subject"]), int(one["version"]))
                for one in body.get("references") or ()
            )
            schema = Schema(kind, normal(kind, text), references)
            _check(schema, self.referenced(schema))
        except RegistryError as error:
            raise RegistryError(42201, f"Invalid schema: {error}") from error
        except (DecodingError, KeyError, TypeError, ValueError) as error:
            raise RegistryError(42201, f"Invalid schema {text[:200]}: {error}") from error
        return schema


def normal(kind: str, text: str) -> str:
    """JSON without needless spaces; Protobuf as it is."""
    if kind == PROTOBUF:
        return text.strip()
    stripped = text.strip()
    if kind == AVRO and stripped.isidentifier():
        return json.dumps(stripped)
    return json.dumps(json.loads(stripped), ensure_ascii=False, separators=(",", ":"))


def _check(schema: Schema, referenced: Mapping[str, str]) -> None:
    """Compile the schema. Raises DecodingError."""
    if schema.kind == AVRO:
        from horolog.client.decoding.avro import AvroSchema

        AvroSchema(schema.text, referenced)
    elif schema.kind == PROTOBUF:
        from horolog.client.decoding.protobuf import ProtobufSchema

        ProtobufSchema.of_text(schema.text, "its text", referenced.get)
