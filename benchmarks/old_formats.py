"""What it costs to read records that old producers wrote: as they are stored, converted for the first reader, and remembered.

    python -m benchmarks.old_formats                      # prints a table: microseconds of processor time for a record

Slices of 1 MiB are read from a partition on the disk as Fetch reads them, in one process, without network.
"""

import tempfile
import time
from dataclasses import replace
from itertools import product

from horolog.broker.config.settings import load
from horolog.broker.config.topic_settings import resolve
from horolog.broker.log.partition import Partition, Resources
from horolog.broker.log.recovery import PartitionFolder, create_partition
from horolog.broker.log.segments import Allowance, ConvertedChunks
from horolog.broker.log.storage import RealStorage
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.convert import encode
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.record import Record

SET_RECORDS = 500
SLICE_BYTES = 1 << 20
NOW_MS = 1_700_000_000_000
REMEMBERED_BYTES = 1 << 30


def filled(folder: str, name: str, magic: int, codec: Codec, value_bytes: int, count: int) -> Partition:
    config = replace(resolve({}, load(None, {}, {})[0]), stored_magic=magic)
    resources = Resources(RealStorage(), converted=ConvertedChunks(REMEMBERED_BYTES))
    partition = create_partition(PartitionFolder(name, 0, f"{folder}/{name}-0"), None, config, resources, NOW_MS)
    value = (b"%020d" * (value_bytes // 20 + 1))[:value_bytes]
    for first in range(0, count, SET_RECORDS):
        records = [Record(n, NOW_MS + first + n, 0, b"key", value) for n in range(SET_RECORDS)]
        data = encode_batch(records, codec) if magic == 2 else encode(records, magic, codec)
        partition.append(bytes(data), NOW_MS, produce_version=3 if magic == 2 else 2)
    partition.flush()
    return partition


def read_through(partition: Partition, *, upconvert: bool) -> float:
    """Microseconds of processor time for a record."""
    began, offset = time.process_time(), 0
    while offset < partition.high_watermark:
        data = partition.read(offset, SLICE_BYTES, upconvert=Allowance() if upconvert else None)
        last = 0
        for entry in heads_in(data):
            last = entry.last_offset
        offset = last + 1
    return (time.process_time() - began) * 1e6 / partition.high_watermark


def main() -> None:
    print("| value | codec | v2 | v1, stored bytes | v1, converted first | v1, remembered | v0, converted first |")
    print("|---|---|---|---|---|---|---|")
    for value_bytes, codec in product((100, 1000), (Codec.NONE, Codec.GZIP, Codec.LZ4)):
        count = 20_000_000 // (value_bytes + 100)
        cells = []
        with tempfile.TemporaryDirectory() as folder:
            newest = filled(folder, "two", 2, codec, value_bytes, count)
            read_through(newest, upconvert=True)
            cells.append(read_through(newest, upconvert=True))
            one = filled(folder, "one", 1, codec, value_bytes, count)
            read_through(one, upconvert=False)
            cells += [read_through(one, upconvert=upconvert) for upconvert in (False, True, True)]
            cells.append(read_through(filled(folder, "zero", 0, codec, value_bytes, count), upconvert=True))
        print(
            f"| {value_bytes} B | {codec.name.lower()} | " + " | ".join(f"{one:.3f}" for one in cells) + " |",
            flush=True,
        )


if __name__ == "__main__":
    main()
