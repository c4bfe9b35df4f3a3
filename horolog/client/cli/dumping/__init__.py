"""The content of data folder files, as items for `horolog dump`: dictionaries that are JSON already.

Every dumper yields items of these types, each with `type` first:

    file       path, kind and size, before all others of a file
    batch      a batch of format v2;   message: a message of format v0 or v1, or a wrapper of several
    record     one record, if asked for
    entry      a line of an index, a snapshot or a checkpoint, with the fields of its kind
    padding    zeros after the contents: preallocated room
    damage     bytes of a log that are not a batch: where, how many, between which offsets, and why
    problem    anything else that cannot be right, with the entry or line it is about
    summary    counts, and the range of offsets and timestamps, after all others of a file
"""

__all__ = [
    "files",
    "indexes",
    "items",
    "kinds",
    "logs",
    "small_files",
]
