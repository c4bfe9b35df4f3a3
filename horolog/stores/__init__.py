"""Object stores: which one a URL names, its credentials, and one interface whose creates never overwrite.

The packages of `obstore` are imported when a store is opened, and not before: a broker without a store never imports them.
"""

__all__ = [
    "addresses",
    "bucket_store",
    "credentials",
    "faults",
    "memory_store",
    "object_store",
    "opening",
    "place",
    "requests",
    "self_test",
    "start_check",
]
