"""Tables that topics are archived into: one row per record, partitioned by the date of the record's own time.

A table knows how far it holds each partition of each topic, and takes rows and that knowledge in one commit: whatever a crash
leaves, the next run goes on where the last commit ended, and no row is there twice. `table.Table` says what a table can do;
`parquet` is plain files with a log of commits beside them, `delta` and `iceberg` are theirs with the offsets in each commit.
"""
