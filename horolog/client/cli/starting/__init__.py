"""Parts of `horolog up`: sample data and how it is written, the console's process, and the text that introduces a broker."""

__all__ = [
    "filling",
    "introduction",
    "pages",
    "sample_data",
    "session",
]
