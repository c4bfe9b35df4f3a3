"""Data folders into the prefix of a bucket, and out of it: for commands, without a broker."""

__all__ = [
    "exporting",
    "folder_copy",
    "founding_entries",
    "importing",
    "log_pieces",
    "logged_losses",
    "moment_store",
    "partition_import",
    "piece_objects",
    "prefix_reading",
    "waiting_store",
    "whole_folder",
]
