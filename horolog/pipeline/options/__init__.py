"""The options of reading and writing, checked: brokers, settings under Java's names, target topics, how a broker is reached."""

__all__ = [
    "brokers",
    "options",
    "reaching",
    "target_topics",
]
