"""Tables that topics are archived into: one row per record, partitioned by the date of the record's own time.

A table records the offset that it has reached in each partition of each topic, in the same commit as the rows: after a crash
the next run continues where the last commit ended, and no row is there twice. `table.Table` says what a table can do;
`parquet` is plain files with a log of commits, `delta` and `iceberg` are theirs with the offsets in each commit.
"""

__all__ = [
    "catalogues",
    "evolution",
    "layout",
    "lock",
    "parquet",
    "row_files",
    "table",
    "upkeep",
]
