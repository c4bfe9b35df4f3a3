"""Opens a file of a data folder, finds what kind it is, and hands it to the dumper of that kind."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from crc32c import crc32c

from horolog.broker.log.storage import FileMissing, ReadOnlyStorage, StorageFault, aside_names
from horolog.client.cli.dumping import indexes, logs, records, small_files
from horolog.client.cli.dumping.items import Item
from horolog.client.cli.dumping.kinds import base_offset_of, decoder_of, kind_of

INDEXES = ("offset-index", "time-index")
FIRST_BYTES_SHOWN = 32


class MissingFile(Exception):
    """There is no such file, or it is not one of a data folder."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which parts of the files to show."""

    deep: bool = False
    with_data: bool = False
    decoder: str | None = None
    """A name of `records.DECODERS`, `raw` for none, None to decide by the folder's name."""
    max_batch_bytes: int | None = None
    max_bytes: int | None = None
    entries: bool = True
    against_log: bool = True


def files_of(path: str) -> list[str]:
    """The file, or the files of a folder that are of a known kind, by name. Raises MissingFile."""
    place = Path(path)
    if place.is_dir():
        found = sorted(str(one) for one in place.iterdir() if one.is_file() and kind_of(one.name) is not None)
        if not found:
            raise MissingFile(f"{path} is a folder without files that this command reads")
        return found
    if not place.exists():
        raise MissingFile(f"{path} does not exist")
    if kind_of(path) is None:
        raise MissingFile(f"{path} does not have the name of a file in a data folder")
    return [path]


def dump_file(path: str, question: Question, storage: ReadOnlyStorage | None = None) -> Iterator[Item]:
    """The items of one file, of this machine's disk or of a prefix; a disk error is a problem like others."""
    kind = kind_of(path)
    assert kind is not None, "files_of gives no others"
    storage = storage or ReadOnlyStorage()
    try:
        size_bytes, _ = storage.stat(path)
        yield {
            "type": "file",
            "path": path,
            "kind": kind,
            "size_bytes": size_bytes,
            "base_offset": base_offset_of(path),
        }
        if kind == "log":
            yield from _log(storage, path, size_bytes, question)
        elif kind in INDEXES:
            yield from _index(storage, path, kind, question)
        elif kind == "set-aside":
            yield from _set_aside(path, storage.read_all(path))
        else:
            yield from small_files.dump_small(kind, storage.read_all(path), base_offset_of(path))
    except StorageFault as fault:
        yield {"type": "problem", "problem": str(fault)}


def _log(storage: ReadOnlyStorage, path: str, size_bytes: int, question: Question) -> Iterator[Item]:
    name = question.decoder or decoder_of(path)
    asked = logs.DumpOptions(
        question.deep,
        question.with_data,
        records.DECODERS.get(name or ""),
        question.max_batch_bytes,
        question.max_bytes,
    )
    file = storage.open(path)
    try:
        yield from logs.dump_log(file, size_bytes, base_offset_of(path), asked)
    finally:
        file.close()


def _index(storage: ReadOnlyStorage, path: str, kind: str, question: Question) -> Iterator[Item]:
    data = storage.read_all(path)
    base_offset = base_offset_of(path) or 0
    entries, padding_bytes, _ = indexes.split(data, indexes.ENTRY_OF[kind])
    if question.entries:
        yield from indexes.entry_items(kind, entries, base_offset)
    if padding_bytes:
        yield {"type": "padding", "position": len(entries) * indexes.ENTRY_OF[kind].size, "size_bytes": padding_bytes}
    insane = list(indexes.sanity_items(kind, data))
    yield from insane
    checked = "entries" if not question.against_log else "log"
    if question.against_log and not insane:
        yield from _against_log(storage, path, kind, data, base_offset)
    yield {"type": "summary", "entries": len(entries), "checked_against": checked}


def _against_log(storage: ReadOnlyStorage, path: str, kind: str, data: bytes, base_offset: int) -> Iterator[Item]:
    log_path = f"{path.rpartition('.')[0]}.log"  # a path would lose a slash of a URL
    try:
        log_bytes, _ = storage.stat(log_path)
    except FileMissing:
        yield {"type": "problem", "problem": f"{log_path}, the log of this index, is missing"}
        return
    log = storage.open(log_path)
    try:
        yield from indexes.verify_items(kind, data, base_offset, log, log_bytes)
    finally:
        log.close()


def _set_aside(path: str, data: bytes) -> Iterator[Item]:
    told = aside_names.parse_name(PurePath(path).name)
    assert told is not None, "its kind is recognised by its name"
    yield {
        "type": "entry",
        "reason": told.kind,
        "base_offset": told.base_offset,
        "position": told.position,
        "first_offset": told.first_offset,
        "last_offset": told.last_offset,
        "size_bytes": len(data),
        "first_bytes": data[:FIRST_BYTES_SHOWN].hex(),
    }
    if crc32c(data) != told.crc:
        yield {"type": "problem", "problem": f"its checksum is {crc32c(data):08x}, its name says {told.crc:08x}"}
