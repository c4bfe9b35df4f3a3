"""An object store that a URL names, by obstore: S3 and what speaks like it, Google's, Azure's, and a local folder.

A create is sent exactly once, in one request, by a client of its own that never retries: a retry of the client's would hide that an
earlier attempt may have arrived. All other requests are repeated on faults that pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from horolog.stores.faults import StoreRefusal, says_taken
from horolog.stores.object_store import Created, Outcome, Stored
from horolog.stores.place import StorePlace

REQUEST_SECONDS = 10.0
LARGE_BYTES = 8 << 20
LARGE_TIMES = 12
"""A create of more bytes may take so many times as long as other requests: slow lines need it for a segment."""
RETRIES = 3


class BucketStore:
    """The objects of a place in a bucket."""

    def __init__(self, place: StorePlace, request_seconds: float = REQUEST_SECONDS, retries: int = RETRIES) -> None:
        self.place = place
        self._creating: Any = place.client(0, request_seconds)
        self._creating_large: Any = place.client(0, LARGE_TIMES * request_seconds)
        self._asking: Any = place.client(retries, request_seconds)
        self._before = len(place.key("")) + 1 if place.folder else 0

    def __repr__(self) -> str:
        return f"<BucketStore {self.place.url}>"

    def create(self, key: str, data: bytes) -> Created:
        import obstore
        from obstore.exceptions import BaseError

        try:
            client = self._creating if len(data) <= LARGE_BYTES else self._creating_large
            obstore.put(client, self.place.key(key), data, mode="create", use_multipart=False)
        except (BaseError, OSError, NotImplementedError) as error:
            if says_taken(error):
                return Created(Outcome.TAKEN)
            fault = self.place.fault(error)
            return Created(Outcome.UNKNOWN, str(fault), isinstance(fault, StoreRefusal))
        return Created(Outcome.MADE)

    def get(self, key: str) -> bytes:
        import obstore

        with self.place.told():
            return bytes(obstore.get(self._asking, self.place.key(key)).bytes())

    def get_range(self, key: str, start: int, end: int) -> memoryview:
        import obstore

        with self.place.told():
            return memoryview(obstore.get_range(self._asking, self.place.key(key), start=start, end=end))

    def stat(self, key: str) -> Stored:
        import obstore

        with self.place.told():
            return self._stored(obstore.head(self._asking, self.place.key(key)))

    def list(self, prefix: str = "") -> Iterator[Stored]:
        import obstore

        with self.place.told():
            for chunk in obstore.list(self._asking, self.place.key(prefix) or None):
                yield from map(self._stored, chunk)

    def folders(self, prefix: str) -> Iterator[str]:
        import obstore

        with self.place.told():
            found = obstore.list_with_delimiter(self._asking, self.place.key(prefix))
        return (one.rpartition("/")[2] for one in found["common_prefixes"])

    def delete(self, key: str) -> None:
        import obstore

        try:
            with self.place.told():
                obstore.delete(self._asking, self.place.key(key))
        except FileNotFoundError:
            return

    def _stored(self, described: Any) -> Stored:
        when = round(described["last_modified"].timestamp() * 1000)
        return Stored(described["path"][self._before :], described["size"], when)
