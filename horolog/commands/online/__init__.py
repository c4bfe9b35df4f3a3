"""Shared by commands that talk to a broker."""

__all__ = [
    "actions",
    "connecting",
    "decoding",
    "encoding",
    "formats",
    "lines",
    "looked_at",
    "looking_ahead",
    "measuring",
    "reading",
    "record_text",
    "segments",
    "sending",
    "setting_values",
    "units",
]
