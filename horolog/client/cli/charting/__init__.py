"""Record counts over time: read from time indexes, and drawn as text or as a picture.

- `index_points` reads the time indexes of a partition's folder, but no log
- `horolog.commands.charting` draws what `horolog.client.charting` has counted
"""

__all__ = [
    "index_points",
]
