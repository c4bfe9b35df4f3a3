"""Record counts over time: read from time indexes, and drawn as text or as a picture.

- `index_points` reads the time indexes of a partition's folder, but no log
- `drawing` and `png` draw what `horolog.client.charting` has counted
"""
