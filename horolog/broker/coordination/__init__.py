"""What coordinators share: a journal in an internal topic, and timers. Groups and transactions are built on it."""

__all__ = [
    "audit_topic",
    "keyed_queue",
    "timers",
    "topic_journal",
]
