"""A table's files in an object store: commits and locks are conditional writes, rows are whole objects that are copied into place."""

from contextlib import suppress
from typing import Any

from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.stores.store import AtPlace, Download, Files, Listed, Upload
from horolog.stores.faults import StoreError


class ObjectStore(AtPlace[Place]):
    """A folder of a bucket."""

    at_once = 16

    # -- small files

    def create(self, name: str, data: bytes) -> bool:
        """A write that was tried again, because its answer was lost, finds its own: contents say who has written them."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, NotSupportedError

        with self.place.told():
            try:
                obstore.put(self.opened, self.place.key(name), data, mode="create")
            except AlreadyExistsError:
                return self.read(name) == data
            except (NotImplementedError, NotSupportedError):
                raise _no_conditions(self.place) from None
        return True

    def replace(self, name: str, data: bytes) -> None:
        import obstore

        with self.place.told():
            obstore.put(self.opened, self.place.key(name), data)

    def read(self, name: str) -> bytes | None:
        import obstore

        try:
            with self.place.told():
                return bytes(obstore.get(self.opened, self.place.key(name)).bytes())
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        return sorted(name for name in self._below(folder, "objects"))

    def folders(self, folder: str) -> list[str]:
        return sorted(name for name in self._below(folder, "common_prefixes"))

    def _below(self, folder: str, kind: str) -> list[str]:
        import obstore

        with self.place.told():
            found: Any = obstore.list_with_delimiter(self.opened, self.place.key(folder) or None)[kind]  # type: ignore[literal-required,unused-ignore]
        paths = (each if isinstance(each, str) else each["path"] for each in found)
        return [path.rstrip("/").rpartition("/")[2] for path in paths]

    def remove(self, name: str) -> None:
        self._remove(self.place.key(name))

    def _remove(self, keys: str | list[str]) -> None:
        import obstore

        with suppress(FileNotFoundError), self.place.told():
            obstore.delete(self.opened, keys)

    # -- files of rows

    def check(self) -> None:
        """Raise StoreError unless a second write of a name that is there is refused; then nothing here would be safe."""
        import uuid

        import obstore
        from obstore.exceptions import AlreadyExistsError, NotSupportedError

        key = self.place.key(f"probe-{uuid.uuid4().hex}")
        with self.place.told():
            try:
                obstore.put(self.opened, key, b"", mode="create")
                obstore.put(self.opened, key, b"", mode="create")
            except AlreadyExistsError:
                return
            except (NotImplementedError, NotSupportedError):
                pass
            finally:
                with suppress(StoreError):
                    self._remove(key)
        raise _no_conditions(self.place)

    def files(self, folder: str) -> dict[str, int]:
        import obstore

        own = len(self.place.folder) + 1 if self.place.folder else 0
        with self.place.told():
            listed: Any = obstore.list(self.opened, self.place.key(folder) or None)
            return {each["path"][own:]: each["size"] for chunk in listed for each in chunk}

    def listed(self, folder: str) -> dict[str, Listed]:
        import obstore

        own = len(self.place.folder) + 1 if self.place.folder else 0
        with self.place.told():
            listed: Any = obstore.list(self.opened, self.place.key(folder) or None)
            return {
                each["path"][own:]: Listed(
                    each["size"], round(each["last_modified"].timestamp() * 1000), _version(each)
                )
                for chunk in listed
                for each in chunk
            }

    def move(self, name: str, to: Files, target: str) -> bool:
        import obstore

        assert isinstance(to, ObjectStore)
        try:
            with self.place.told():
                obstore.copy(self.opened, self.place.key(name), to.place.key(target))
        except FileNotFoundError:
            return False
        self.remove(name)
        return True

    def remove_folder(self, folder: str) -> None:
        keys = [self.place.key(name) for name in self.files(folder)]
        if keys:
            self._remove(keys)

    def remove_empty(self, folder: str) -> None:
        """A folder is there while something is in it."""

    def exists(self, name: str) -> bool:
        import obstore

        try:
            with self.place.told():
                obstore.head(self.opened, self.place.key(name))
        except FileNotFoundError:
            return False
        return True

    def writer(self, name: str) -> Upload:
        import obstore

        with self.place.told():
            return Upload(self.place, obstore.open_writer(self.opened, self.place.key(name)))

    def reader(self, name: str) -> Download:
        import obstore

        with self.place.told():
            size = int(obstore.head(self.opened, self.place.key(name))["size"])
        return Download(self, name, size)

    def read_range(self, name: str, start: int, end: int) -> bytes:
        import obstore

        with self.place.told():
            return bytes(obstore.get_range(self.opened, self.place.key(name), start=start, end=end))

    def version(self, name: str) -> str:
        import obstore

        with self.place.told():
            return _version(obstore.head(self.opened, self.place.key(name)))


def _version(said: Any) -> str:
    """Its size and its time in seconds, which a look at a single object and a listing tell alike everywhere, and its ETag."""
    e_tag = (said.get("e_tag") or "").strip('"')
    return f"{said['size']} {int(said['last_modified'].timestamp())} {e_tag}".strip()


def _no_conditions(place: Place) -> StoreError:
    return StoreError(
        f"{place.url}: the store has no conditional writes (If-None-Match), so two jobs could overwrite each other's work"
    )
