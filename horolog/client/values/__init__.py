"""Values of the client and the grammars of times: errors, records, offsets, moments, durations, zones."""

__all__ = [
    "errors",
    "group_settings",
    "time_ranges",
    "times",
    "types",
]
