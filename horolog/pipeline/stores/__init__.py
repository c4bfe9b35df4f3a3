"""Where tables and segment files lie: folders, object stores, other file systems and HDFS, behind one interface."""

__all__ = [
    "file_systems",
    "object_stores",
    "store",
]
