"""What Spark finds by name: the data source `horolog`, and topics as tables of SQL."""

__all__ = [
    "source",
    "topic_tables",
]
