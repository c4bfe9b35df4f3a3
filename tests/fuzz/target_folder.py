"""A partition's folder with one file damaged: byte 0 picks the folder, byte 1 the file and the damage's kind, the rest is the damage.

Whatever is in it, the folder opens (or its partition is offline, alone), every lookup is a linear scan over what can be read, an append
works, and after another start all of it is still there. Where the log itself was left alone, every record is.
"""

import io
import logging
import tarfile
from functools import cache

from horolog.base.clock import ManualClock
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import Partition, lookups
from horolog.broker.log.storage import MemoryStorage
from horolog.protocol.records.record import Record
from tests.support import golden
from tests.support.logs import WALL_MS, broker_settings, read_all, topic_config
from tests.vendor.wire_prober.wire import batch

CASES = ("v1-ooo-interval", "v1-multiseg", "v2-multiseg-zstd", "v2-idempotent", "v2-txn-multiseg", "v0-then-v1")
FOLDER = "/data/topic-0"
LOG = logging.getLogger("horolog.broker.log")
"""It says for each damaged file how it is dealt with, which is not tested here."""
Files = dict[str, bytes]


@cache
def folder(number: int) -> Files:
    """The files of a golden case, straight from the archive."""
    prefix = f"{CASES[number]}/clean/"
    found = {}
    with tarfile.open(golden.ARCHIVE) as archive:
        for member in archive.getmembers():
            name = member.name.removeprefix(prefix)
            if member.isfile() and name != member.name and "/" not in name:
                opened = archive.extractfile(member)
                found[name] = (opened or io.BytesIO()).read()
    return found


@cache
def undamaged(number: int) -> list[Record]:
    logs = open_folder(storage_with(folder(number), clean=True))
    records = read_all(logs.partitions["topic", 0])
    logs.close()
    return records


def storage_with(files: Files, *, clean: bool) -> MemoryStorage:
    storage = MemoryStorage()
    storage.make_dir("/data")
    storage.make_dir(FOLDER)
    for name, content in files.items():
        storage.write_atomically(f"{FOLDER}/{name}", content)
    if clean:
        storage.write_atomically("/data/.kafka_cleanshutdown", b"")
    return storage


def open_folder(storage: MemoryStorage) -> LogManager:
    config = topic_config({"retention.ms": "-1"})
    logs = LogManager(["/data"], storage, ManualClock(WALL_MS), broker_settings())
    logs.open(lambda _: config)
    return logs


def target(data: bytes) -> object:
    if len(data) < 3:
        return None
    LOG.setLevel(logging.CRITICAL)
    number = data[0] % len(CASES)
    files = dict(folder(number))
    names = sorted(files)
    name = names[data[1] % len(names)]
    files[name] = damaged(files[name], data[2], data[3:])
    storage = storage_with(files, clean=bool(data[0] & 0x80))
    logs = open_folder(storage)
    partition = logs.partitions["topic", 0]
    if partition.condition.fault is not None:
        logs.close()
        return CASES[number], name[20:], "offline"
    records = look_ups_are_right(partition)
    if not name.endswith(".log"):
        assert records == undamaged(number), f"records changed when {name} was damaged"
    end = partition.log_end_offset
    partition.append(batch([b"after"], ts=WALL_MS), WALL_MS, produce_version=9)
    partition.flush()
    logs.close()
    logs = open_folder(storage)
    again = read_all(logs.partitions["topic", 0])
    assert again[:-1] == records, "a restart changes nothing"
    assert (again[-1].offset, again[-1].value) == (end, b"after")
    logs.close()
    return CASES[number], name[20:], len(records)


def damaged(content: bytes, way: int, damage: bytes) -> bytes:
    """Some bytes replaced, inserted, cut out or appended, at a place that the damage's first two bytes choose."""
    at = int.from_bytes(damage[:2], "big") % (len(content) + 1)
    put = damage[2:]
    kind = way & 3
    if kind == 0:
        return content[:at] + put + content[at + len(put) :]
    if kind == 1:
        return content[:at] + put + content[at:]
    if kind == 2:
        return content[:at] + content[at + len(put) :]
    return content[:at] + put


def look_ups_are_right(partition: Partition) -> list[Record]:
    records = read_all(partition)
    offsets = [record.offset for record in records]
    assert offsets == sorted(set(offsets)), "offsets grow"
    times = {record.timestamp for record in records if record.timestamp >= 0}
    for wanted in {0, *list(times)[:12], max(times, default=0) + 1}:
        expected = next((record for record in records if record.timestamp >= wanted), None)
        found = lookups.first_at_or_after(partition, wanted)
        answer = (found.offset, found.timestamp) if found else None
        assert answer == ((expected.offset, expected.timestamp) if expected else None), f"target {wanted}"
    return records
