"""Counts the records of any topic over time: lookups at a broker, and the sums.

- `lookups` asks a broker for the offsets at the bucket borders
- `buckets` turns those, or time index entries, into counts per bucket; finds gaps, disorder and future times; pure
"""

__all__ = [
    "buckets",
    "lookups",
]
