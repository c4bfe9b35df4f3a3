"""The actions of `horolog store` that read or write a whole prefix: their reports, their progress and their exit codes.

`prefix_folder` opens a prefix for `horolog dump` and `horolog doctor`.
"""

__all__ = ["exporting", "importing", "prefix_folder", "restoring", "verify"]
