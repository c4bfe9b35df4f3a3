"""Few files of many small ones: which go together, and the tasks of Spark that read them. No row goes through the driver.

Files of a folder are merged in bins of about `TARGET_FILE_BYTES`, each of which becomes one file. Files of half that size or more, and a
single small file, stay unchanged, so that a row is rewritten once, or a few times, and not with every run. A task has
one bin, and Spark's sort spills to the disk, so neither the driver's memory nor a task's depends on the size of a date. The bins are
committed in rounds of a few for each core.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from horolog.pipeline.stores.store import Files
from horolog.pipeline.tables import row_files
from horolog.pipeline.tables.layout import Folders
from horolog.pipeline.tables.row_files import Reader, schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_BINS_A_CORE = 4


class Small(NamedTuple):
    """A file that may be merged with others: the number of its folder, its name, its size."""

    folder: int
    name: str
    size_bytes: int


class Bin(NamedTuple):
    """Files of one folder that become one."""

    folder: int
    names: tuple[str, ...]


def bins_of(files: Iterable[Small]) -> list[Bin]:
    """Which of a table's files are merged, folder by folder; pure."""
    target = row_files.TARGET_FILE_BYTES
    bins: list[list[Small]] = []
    size = 0
    for one in sorted(one for one in files if one.size_bytes < target // 2):
        if not bins or bins[-1][0].folder != one.folder or size + one.size_bytes > target:
            bins.append([])
            size = 0
        bins[-1].append(one)
        size += one.size_bytes
    return [Bin(each[0].folder, tuple(one.name for one in each)) for each in bins if len(each) > 1]


def rounds(bins: Sequence[Bin], spark: "SparkSession") -> Iterator[Sequence[Bin]]:
    """As many at a time as keep all cores busy. Each round is a commit, and a crash loses no committed round."""
    most = max(1, _BINS_A_CORE * spark.sparkContext.defaultParallelism)
    for start in range(0, len(bins), most):
        yield bins[start : start + most]


def put_together(
    spark: "SparkSession", files: Files, bins: Sequence[Bin], folders: Folders, decoded: "pa.Schema"
) -> "DataFrame":
    """The rows of the bins, each bin in a partition of its own."""
    from horolog.pipeline.tables.evolution import as_spark

    numbers = spark.range(0, len(bins), 1, len(bins))
    return numbers.mapInArrow(BinReader(files, bins, folders, decoded), as_spark(schema(folders, decoded)))


class BinReader:
    """What a task does with the number of a bin."""

    def __init__(self, files: Files, bins: Sequence[Bin], folders: Folders, decoded: "pa.Schema") -> None:
        self._bins = bins
        self._reader = Reader(files, folders, None, None, decoded)

    def __call__(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            for number in batch.column(0).to_pylist():
                chosen = self._bins[number]
                for name in chosen.names:
                    yield from self._reader.read(name, chosen.folder)
