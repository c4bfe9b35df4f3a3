"""What commands of several packages share: exit codes, errors, output, arguments, and how they reach a broker and show records.

Nothing here is expensive to import. The commands themselves are in `horolog.client.cli`, `horolog.console`,
`horolog.testing` and `horolog.pipeline.jobs`.
"""

__all__ = [
    "arguments",
    "charting",
    "connection",
    "console",
    "errors",
    "exit_codes",
    "online",
    "running",
    "suggestions",
    "tables",
    "usage",
]
