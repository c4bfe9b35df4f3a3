"""What coordinators share: a journal in an internal topic, and timers. Groups and transactions are built on it."""
