"""How many records there are at which time: from time indexes or from look-ups, as text or as a picture.

- `index_points` reads the time indexes of a partition's folder, and no log
- `lookups` asks a broker at the borders of the buckets
- `buckets` turns either into counts per bucket, finds gaps, disorder and times of the future; pure
- `drawing` and `png` draw them
"""
