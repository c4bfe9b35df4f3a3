"""A log whose bytes are on their way here from a store until a test says otherwise."""

from horolog.broker.log.storage import NotHere


class OnItsWay:
    """Stands in for the log of a segment."""

    def __init__(self, segment):
        self.below, self.is_here, self.has_failed, self.reads = segment.log, False, False, 0
        segment.log = self

    def __getattr__(self, name):
        return getattr(self.below, name)

    def unread(self, size, position):
        return None

    def pread(self, size, position):
        self.reads += 1
        if not self.is_here:
            raise NotHere("it is on its way", path=self.below.path, has_failed=self.has_failed)
        return self.below.pread(size, position)

    def arrive(self, broker, *partitions):
        self.is_here = True
        broker.waiting.changed(partitions)
