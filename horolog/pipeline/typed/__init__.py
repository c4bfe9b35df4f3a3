"""Keys and values of records as typed columns: `preparing` makes readers of the options, `decoding` applies them to Arrow batches."""

__all__ = [
    "by_schema",
    "ddl",
    "decoding",
    "options",
    "readers",
]
