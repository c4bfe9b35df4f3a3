"""Examines a data folder that no broker runs on: its damage, and how recovery would deal with it.

- `segment_check` reads one segment from end to end and checks its indexes against it
- `folder_check` does so for a whole partition, and for the files of the data folder
- `given_folders` refuses paths that are not data folders
- `overlay` is a storage whose changes stay in memory
- `rehearsal` runs the broker's own recovery on an overlay, and reports its changes; `repair` runs it on the disk
"""

__all__ = [
    "adopting",
    "folder_check",
    "folder_days",
    "folder_rules",
    "folder_source",
    "given_folders",
    "rehearsal",
    "segment_ages",
]
