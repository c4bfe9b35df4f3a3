"""The partition log: segments, indexes, lookups by time, and crash recovery. Nothing here uses the network or an event loop.

Its rooms, each of which may import from those below it:

    manager       all partitions: data folders, and the folder of each partition
    compaction    keeps the last record of every key
    recovery      opens partitions, and looks after running ones
    partition     one partition: append, roll, expire, sync
    segments      one segment: append, read, look up by time, convert for readers
    integrity     checks, seals, damage: whether bytes are those that were written
    counters      what the log counts
    validation    whether a record set is accepted
    producers     the state of idempotent and transactional producers
    indexes       files of offsets, times, aborted transactions
    files         small files without records
    storage       the disk, memory, an overlay: the only file calls

A room's front is its `__init__`: other code imports from there, never from the modules behind it.
"""
