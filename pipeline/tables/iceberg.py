"""An Iceberg table, written by `pyiceberg` with a catalogue in SQLite beside it; each snapshot's summary has `horolog.offsets`."""

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.tables.arrow import arrow_of, facts
from pipeline.tables.table import DATE, Offsets, TableError, Written, decode_offsets, encode_offsets, in_range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OFFSETS = "horolog.offsets"
NAME = "horolog.records"


class IcebergFolder:
    def __init__(self, folder: str, spark: "SparkSession") -> None:
        self.folder = Path(folder).resolve()
        self._spark = spark
        self._catalog: Any = None

    def open(self) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        if self.folder.exists() and not self.folder.is_dir():
            raise TableError(f"{self.folder} is no folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        uri = f"sqlite:///{self.folder / 'catalog.db'}"
        self._catalog = SqlCatalog("horolog", uri=uri, warehouse=self.folder.as_uri())
        self._catalog.create_namespace_if_not_exists("horolog")

    def _table(self) -> Any:
        return self._catalog.load_table(NAME) if self._catalog.table_exists(NAME) else None

    def offsets(self) -> Offsets:
        table = self._table()
        snapshot = None if table is None else table.current_snapshot()
        while snapshot is not None:
            found = snapshot.summary.additional_properties.get(OFFSETS) if snapshot.summary else None
            if found is not None:
                return decode_offsets(json.loads(found))
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else table.snapshot_by_id(parent)
        return {}

    def append(self, rows: "DataFrame", offsets: Offsets) -> Written:
        data = arrow_of(rows)
        table = self._table() or self._create(data.schema)
        table.append(data, snapshot_properties={OFFSETS: json.dumps(encode_offsets(offsets))})
        return facts(data)

    def _create(self, schema: Any) -> Any:
        from pyiceberg.transforms import IdentityTransform

        table = self._catalog.create_table(NAME, schema=schema)
        with table.update_spec() as update:
            update.add_field(DATE, IdentityTransform(), DATE)
        return self._catalog.load_table(NAME)

    def compact(self) -> int:
        """Each date that has several files is written anew, in one snapshot."""
        table = self._table()
        if table is None:
            return 0
        per_date: dict[str, int] = {}
        for task in table.scan().plan_files():
            date = _date(task.file.partition[0])
            per_date[date] = per_date.get(date, 0) + 1
        gone = 0
        properties = {OFFSETS: json.dumps(encode_offsets(self.offsets()))}
        for date, files in sorted(per_date.items()):
            if files > 1:
                only = f"{DATE} = '{date}'"
                data = (
                    table.scan(row_filter=only)
                    .to_arrow()
                    .sort_by([("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")])
                )
                table.overwrite(data, overwrite_filter=only, snapshot_properties=properties)
                table = self._table()
                gone += files - sum(1 for _ in table.scan(row_filter=only).plan_files())
        return gone

    def rows(self, since_ms: int | None = None, until_ms: int | None = None) -> "DataFrame":
        """Spark reads the files of the newest snapshot: the JVM's own Iceberg reader does not work with this Spark."""
        table = self._table()
        if table is None:
            raise TableError(f"{self.folder} is no Iceberg table yet")
        files = [task.file.file_path for task in table.scan().plan_files()]
        return in_range(self._spark.read.parquet(*files), since_ms, until_ms)


def _date(value: Any) -> str:
    """Iceberg keeps dates as days since 1970."""
    return (dt.date(1970, 1, 1) + dt.timedelta(days=value)).isoformat() if isinstance(value, int) else str(value)
