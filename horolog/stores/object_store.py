"""What brokers ask of an object store: an object is created once or not at all, read whole or in part, listed, and removed.

A create has one of three outcomes. MADE: the object is there with these bytes. TAKEN: the key held an object before. UNKNOWN: anything
else, a timeout, a reset, 409, 5xx or a refusal. The create may still arrive, even much later, so UNKNOWN never says that the key is
free. A caller that has to know sends the same bytes again until it gets MADE or TAKEN, and after TAKEN reads whose bytes are there:
its own, if an earlier attempt arrived.
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple, Protocol

Bytes = bytes | memoryview
"""A part of an object as it came; a copy of large ones takes as long as the rest of the request."""


class Outcome(Enum):
    MADE = "made"
    TAKEN = "taken"
    UNKNOWN = "unknown"


class Created(NamedTuple):
    """The outcome of a create; `fault` says why it is unknown. `is_refused`: the store answered, and will refuse it again."""

    outcome: Outcome
    fault: str = ""
    is_refused: bool = False


class Stored(NamedTuple):
    """An object as a listing describes it; the time is that of the store's clock."""

    key: str
    size_bytes: int
    last_modified_ms: int


class ObjectStore(Protocol):
    """The objects of one place, by keys relative to it. Each call waits for its answer, and several threads may call at a time.

    Calls other than `create` raise StoreError if the store refuses or does not answer, and FileNotFoundError for a missing object.
    """

    def create(self, key: str, data: bytes) -> Created:
        """Create an object unless the key is taken. It is sent once; it never raises for what the store answers."""

    def get(self, key: str) -> bytes: ...

    def get_range(self, key: str, start: int, end: int) -> Bytes:
        """The bytes from `start` up to `end`, fewer where the object ends; StoreError if it ends before `start`."""

    def stat(self, key: str) -> Stored: ...

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """The objects whose keys begin with `prefix`, a name of folders such as `meta/log`, in no particular order."""

    def folders(self, prefix: str) -> Iterator[str]:
        """The names of the folders in that one: a few, where a list of their objects may be long."""

    def delete(self, key: str) -> None:
        """Remove an object; one that is missing is no error."""


def read_range(store: ObjectStore, key: str, start: int, end: int) -> bytes:
    """A range that is kept: without the memory of the answer that it came with."""
    return bytes(store.get_range(key, start, end))


def as_folder(prefix: str) -> str:
    """What the keys of all objects in a folder begin with; empty if the prefix is."""
    name = prefix.strip("/")
    return f"{name}/" if name else ""


def folders_in(prefix: str, objects: Iterable[Stored]) -> Iterator[str]:
    """The names of the folders in one that all these objects are in."""
    folder = as_folder(prefix)
    behind = (one.key[len(folder) :].partition("/") for one in objects)
    return iter({name for name, slash, _ in behind if slash})
