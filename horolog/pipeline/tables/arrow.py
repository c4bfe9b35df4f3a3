"""Rows of Spark as an Arrow table in this process, for libraries that take those."""

from typing import TYPE_CHECKING, Any

from horolog.pipeline.tables.table import Written, with_date

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def arrow_of(rows: "DataFrame") -> Any:
    """As many rows as were planned for one commit, so that they fit into memory."""
    return with_date(rows).toArrow()


def facts(data: Any) -> Written:
    import pyarrow.compute as pc

    if data.num_rows == 0:
        return Written(0, 0, 0, None)
    newest = pc.max(data["timestamp"]).as_py()
    return Written(data.num_rows, data.nbytes, len(pc.unique(data["date"])), int(newest.timestamp() * 1000))
