"""The partition log: segments, indexes, time, and what survives a crash. Nothing here knows the network or an event loop.

Its rooms, each of which may import from those below it:

    manager       all partitions: data folders, which partition lies where
    compaction    of every key the last record stays
    recovery      opening, and what looks after partitions that run
    partition     one partition: append, roll, expire, sync
    segments      one segment: append, read, look up by time, convert for readers
    integrity     checks, seals, damage: how bytes are known to be those that were written
    counters      what the log counts
    validation    whether a record set is taken
    producers     the state of idempotent and transactional producers
    indexes       files of offsets, times, aborted transactions
    files         small files without records
    storage       the disk, memory, an overlay: the only file calls

A room's front is its `__init__`: whoever is outside imports from there, never from the modules behind it.
"""
