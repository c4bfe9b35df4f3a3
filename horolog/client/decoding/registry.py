"""A client of a schema registry with Confluent's interface: schemas by id, with their references.

A schema is cached: an id never means another schema. A failure is cached for a while, so that reading
continues at once instead of waiting for each record.
"""

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from horolog.client.decoding.registry_access import RegistryAccess
from horolog.client.decoding.values import DecodingError
from horolog.client.wire import http_get

ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
MOST_SCHEMAS = 1000
MOST_REFERENCES = 200
FORGET_FAILURE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """What the registry has under an id."""

    id: int
    kind: str
    """AVRO, PROTOBUF or JSON."""
    text: str
    references: dict[str, str] = field(default_factory=dict)
    """The texts of referenced schemas by the names used in this one, dependencies first."""


class RegistryUnavailable(DecodingError):
    """The registry does not answer, or rejects the client: that says nothing about the schema, and may pass."""


class NotRegistered(DecodingError):
    """The registry has no such schema."""


class Registry:
    """Asks a registry. Raises DecodingError: one sentence, with the registry's address and without credentials."""

    def __init__(self, access: RegistryAccess, clock: Callable[[], float] = time.monotonic) -> None:
        self.access = access
        self.asked = 0
        """How many requests went to the registry."""
        self._clock = clock
        self._schemas: OrderedDict[int, RegisteredSchema] = OrderedDict()
        self._failures: dict[int, tuple[float, DecodingError]] = {}
        self._unreachable: tuple[float, DecodingError] | None = None
        self._lock: asyncio.Lock | None = None

    async def schema(self, number: int) -> RegisteredSchema:
        known = self._schemas.get(number)
        if known is not None:
            return known
        self._raise_known_failure(number)
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:  # concurrent readers may want the same schema
            if number in self._schemas:
                return self._schemas[number]
            self._raise_known_failure(number)
            try:
                found = await self._fetched(number)
            except DecodingError as error:
                if len(self._failures) >= MOST_SCHEMAS:
                    self._failures.clear()
                self._failures[number] = (self._clock(), error)
                raise
            self._schemas[number] = found
            if len(self._schemas) > MOST_SCHEMAS:
                self._schemas.popitem(last=False)
            return found

    def _raise_known_failure(self, number: int) -> None:
        for failure in (self._unreachable, self._failures.get(number)):
            if failure is not None and self._clock() - failure[0] < FORGET_FAILURE_SECONDS:
                raise type(failure[1])(str(failure[1]))

    async def version(self, subject: str, version: str = "latest") -> RegisteredSchema:
        """A subject's schema by version, requested each time: the latest one changes."""
        path = f"/subjects/{quote(subject, safe='')}/versions/{quote(version, safe='')}"
        found = await self._asked(path, f"version {version} of {subject}")
        number = found.get("id")
        return await self._whole(number if isinstance(number, int) else -1, found)

    async def _fetched(self, number: int) -> RegisteredSchema:
        return await self._whole(number, await self._asked(f"/schemas/ids/{number}", f"schema {number}"))

    async def _whole(self, number: int, found: dict[str, Any]) -> RegisteredSchema:
        """The schema with all that it refers to."""
        references: dict[str, str] = {}
        await self._add_references(found, references, set())
        kind = str(found.get("schemaType") or "AVRO")
        return RegisteredSchema(number, kind, str(found["schema"]), references)

    async def _add_references(self, schema: dict[str, Any], found: dict[str, str], begun: set[str]) -> None:
        """Add the schemas that one refers to, each after those that it needs itself."""
        given = schema.get("references")
        for one in given if isinstance(given, list) else ():
            if not isinstance(one, dict) or not {"name", "subject", "version"} <= one.keys():
                raise DecodingError(f"the registry {self.access.name} has a schema with an incomplete reference")
            name = str(one["name"])
            if name in begun:
                continue
            begun.add(name)
            if len(begun) > MOST_REFERENCES:
                raise DecodingError(
                    f"a schema of the registry {self.access.name} needs more than {MOST_REFERENCES} others"
                )
            subject, version = quote(str(one["subject"]), safe=""), quote(str(one["version"]), safe="")
            other = await self._asked(f"/subjects/{subject}/versions/{version}", f"schema {name}")
            await self._add_references(other, found, begun)
            found[name] = str(other["schema"])

    async def _asked(self, path: str, what: str) -> dict[str, Any]:
        name = self.access.name
        self.asked += 1
        try:
            answer = await http_get.get(self.access, path, accept=ACCEPT)
        except http_get.NoAnswer as error:
            sentence = f"the registry {name} {error}"
            raise self._unavailable(sentence) from error
        if answer.status == 200:
            return self._document(answer.body, what)
        if answer.status in {401, 403}:
            sentence = f"the registry {name} requires credentials ({answer.status})"
            if self.access.authorization:
                sentence = f"the registry {name} refused the credentials ({answer.status})"
            raise self._unavailable(sentence)
        if answer.status == 404:
            raise NotRegistered(f"the registry {name} has no {what}")
        fault = RegistryUnavailable if answer.status >= 500 else DecodingError
        raise fault(f"the registry {name} answered the request for {what} with {answer.status}")

    def _unavailable(self, sentence: str) -> RegistryUnavailable:
        """The error, remembered so that later records do not wait for the registry again."""
        error = RegistryUnavailable(sentence)
        self._unreachable = (self._clock(), error)
        return error

    def _document(self, body: bytes, what: str) -> dict[str, Any]:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not isinstance(found.get("schema"), str):
            raise DecodingError(
                f"the registry {self.access.name} answered the request for {what} with something that is not a schema"
            )
        return found
