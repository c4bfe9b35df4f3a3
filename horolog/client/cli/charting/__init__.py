"""How many records there are at which time: from time indexes, and as text or as a picture.

- `index_points` reads the time indexes of a partition's folder, and no log
- `drawing` and `png` draw what `horolog.client.charting` has counted
"""
