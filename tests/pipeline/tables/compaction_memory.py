"""Makes a table with one date of so many MiB in small files, puts these together with a driver of 512 MiB, and says what that held at most.

compaction_memory.py KIND FOLDER MEBIBYTES
"""

import json
import sys
import threading
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from horolog import pipeline
from horolog.client.values.types import TopicPartition
from horolog.pipeline.tables.lock import writing
from horolog.pipeline.tables.table import open_table

ROW_BYTES = 10_000
PER_FILE = 48
"""MiB of rows before they are compressed."""
PLACE = TopicPartition("t", 0)


class Watch(threading.Thread):
    """The largest resident sizes, in MiB, of this Python and of its Java."""

    def __init__(self):
        super().__init__(daemon=True)
        self.done = threading.Event()
        self.peaks = {"python": 0, "java": 0}

    def run(self):
        me = psutil.Process()
        while not self.done.wait(0.05):
            for kind, process in (
                ("python", me),
                *(("java", each) for each in me.children(True) if "java" in each.name()),
            ):
                try:
                    self.peaks[kind] = max(self.peaks[kind], process.memory_info().rss >> 20)
                except psutil.NoSuchProcess:
                    continue


def main(kind, folder, mebibytes):
    spark = pipeline.session("local[2]", quick=True, **{"spark.driver.memory": "512m", "spark.log.level": "ERROR"})
    table = open_table(kind, folder, spark)
    count = PER_FILE * (1 << 20) // ROW_BYTES
    files = max(2, mebibytes // PER_FILE)
    for start in range(0, files * count, 4 * count):
        end = min(files * count, start + 4 * count)
        rows = spark.range(start, end, 1, max(1, (end - start) // count)).selectExpr(
            "'t' as topic", "0 as partition", "id as offset", "timestamp_millis(1763380800000 + id) as timestamp",
            "0 as timestampType", "cast(null as binary) as key",
            f"cast(concat(id, repeat('x', {ROW_BYTES})) as binary) as value",
            "cast(null as array<struct<key:string,value:binary>>) as headers",
        )  # fmt: skip
        with writing(table):
            table.offsets()
            table.append(rows, {PLACE: end}, {"t": "id"})
    watch = Watch()
    watch.start()
    with writing(table):
        table.offsets()
        gone = table.compact()
    watch.done.set()
    watch.join()
    assert table.rows().count() == files * count
    print(json.dumps({"files": gone + 1, **watch.peaks}))
    spark.stop()


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
