"""Looks at a data folder that no broker runs on: its damage, and how recovery would deal with it.

- `segment_check` reads one segment from end to end and holds its indexes against it
- `folder_check` does so with all of a partition, and with the files of the data folder
- `overlay` is a storage whose changes stay in memory
- `rehearsal` lets the broker's own recovery work on an overlay, and says what it has changed; `repair` lets it work on the disk
"""
