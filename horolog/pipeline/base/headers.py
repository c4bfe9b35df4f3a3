"""Headers of rows on their way from Spark to functions in Python: an empty list stands for null meanwhile.

Spark asks for the size of a batch at every row, and each time counts all null lists at its end again. With nulls an archive of a
million rows without headers takes three times as long.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

COLUMN = "headers"


def without_nulls(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as f

    kind = rows.schema[COLUMN].dataType
    return rows.withColumn(COLUMN, f.coalesce(COLUMN, f.array().cast(kind)))


def with_nulls(rows: "pa.Table") -> "pa.Table":
    """The same rows as tables keep them: null where there are no headers."""
    import pyarrow.compute as pc

    place = rows.column_names.index(COLUMN)
    headers = rows.column(place)
    is_empty = pc.equal(pc.list_value_length(headers), 0)
    return rows.set_column(place, COLUMN, pc.if_else(is_empty, None, headers))
