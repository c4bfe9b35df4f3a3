"""Shared by commands that talk to a broker."""

__all__ = [
    "access_words",
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
