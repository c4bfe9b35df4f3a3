"""A Delta table, written by `deltalake`; how far it goes stands in each commit's metadata as `horolog.offsets`."""

import json
from typing import TYPE_CHECKING, Any

from pipeline.tables.arrow import arrow_of, facts
from pipeline.tables.table import DATE, Offsets, TableError, Written, decode_offsets, encode_offsets, in_range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OFFSETS = "horolog.offsets"


class DeltaFolder:
    def __init__(self, folder: str, spark: "SparkSession") -> None:
        self.folder = folder
        self._spark = spark

    def open(self) -> None:
        from deltalake.exceptions import DeltaError

        try:
            self._table()
        except DeltaError as error:
            raise TableError(f"{self.folder} is no Delta table: {error}") from error

    def _table(self) -> Any:
        """None while there is nothing."""
        from deltalake import DeltaTable

        return DeltaTable(self.folder) if DeltaTable.is_deltatable(self.folder) else None

    def offsets(self) -> Offsets:
        table = self._table()
        if table is None:
            return {}
        for commit in table.history():
            found = commit.get(OFFSETS)
            if found is not None:
                return decode_offsets(json.loads(found) if isinstance(found, str) else found)
        raise TableError(f"{self.folder} is a Delta table, but no commit says which topics it is of")

    def append(self, rows: "DataFrame", offsets: Offsets) -> Written:
        from deltalake import CommitProperties, write_deltalake

        data = arrow_of(rows)
        write_deltalake(
            self.folder,
            data,
            mode="append",
            partition_by=[DATE],
            commit_properties=CommitProperties(custom_metadata={OFFSETS: json.dumps(encode_offsets(offsets))}),
        )
        return facts(data)

    def compact(self) -> int:
        table = self._table()
        if table is None:
            return 0
        from deltalake import CommitProperties

        metadata = {OFFSETS: json.dumps(encode_offsets(self.offsets()))}
        found = table.optimize.compact(commit_properties=CommitProperties(custom_metadata=metadata))
        return int(found["numFilesRemoved"]) - int(found["numFilesAdded"])

    def rows(self, since_ms: int | None = None, until_ms: int | None = None) -> "DataFrame":
        """Spark reads the files that the newest version names: the JVM's own Delta reader does not work with this Spark."""
        table = self._table()
        if table is None:
            raise TableError(f"{self.folder} is no Delta table yet")
        files = [str(uri) for uri in table.file_uris()]
        rows = self._spark.read.option("basePath", self.folder).parquet(*files)
        return in_range(rows, since_ms, until_ms)
