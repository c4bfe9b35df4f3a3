"""How many records there are at which time, of any topic: look-ups of a broker, and the sums.

- `lookups` asks a broker at the borders of the buckets
- `buckets` turns that, or what time indexes tell, into counts per bucket; finds gaps, disorder and times of the future; pure
"""
