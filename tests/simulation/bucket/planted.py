"""Bugs that the simulation of a company has to find: each is one line that a broker over a store could easily have had."""

from unittest.mock import patch

from horolog.broker.bucket import members_watch as watch_module
from horolog.broker.bucket import registration as registration_module
from horolog.broker.bucket.lease import Lease
from horolog.broker.bucket.names import number_of
from tests.simulation.bucket.company_world import CompanyWorld
from tests.simulation.bucket.failing_starts import FailingStart
from tests.simulation.bucket.processes import Process, Records


class ServesAtOnce(Process):
    """A new leader does not wait for the lease of the one before."""

    def open(self, place):
        with patch("tests.simulation.bucket.processes.waits_for_lease", lambda *_: False):
            super().open(place)


class NeverLate(Lease):
    """A lease that a timer would end, in a process that stands still."""

    def holds(self):
        return self._proved_s > float("-inf")


async def listed_end(store, wal, *_):
    """No fence: the WAL ends where a list says so."""
    return max((number_of(one.key) + 1 for one in await store.list(wal.folder)), default=0)


class ServesOn(FailingStart):
    """A broker that withdraws before it has stopped."""

    def fail(self):
        served = dict(self.served)
        super().fail()
        self.served.update(served)
        self.watch.lease.holds = lambda: True


class EndsAtOnce(FailingStart):
    """A broker that is stopped while it registers, and does not wait for the outcome."""

    def stop(self):
        if self.watch is None and not self.is_stopping:
            self.is_stopping = True
            self.end_unregistered()
        else:
            super().stop()


class ShipsNothing(Records):
    """A hand-over that does not wait until all is shipped."""

    def ship_all(self, leds, done):
        done(self.writer.safe_end)


class EndsTooEarly(Records):
    """Records count once they are written, before the store has them."""

    def ship(self):
        super().ship()
        for led in self.opened.values():
            led.high_watermark = len(led.records)
        self.process.world.verify_acknowledged(self.process)


BUGS = {
    "a new leader does not wait": lambda: ({"process_class": ServesAtOnce}, []),
    "the lease is never late": lambda: ({}, [patch("tests.simulation.bucket.processes.Lease", NeverLate)]),
    "a list says where a WAL ends": lambda: ({}, [patch.object(watch_module, "fence", listed_end)]),
    "a hand-over that does not ship": lambda: ({}, [patch("tests.simulation.bucket.processes.Records", ShipsNothing)]),
    "high watermark at the write": lambda: ({}, [patch("tests.simulation.bucket.processes.Records", EndsTooEarly)]),
    "a start that fails ends no WAL": lambda: (
        {"process_class": FailingStart},
        [patch.object(registration_module, "fence", listed_end)],
    ),
    "a broker withdraws before it has stopped": lambda: ({"process_class": ServesOn}, []),
    "a broker stops without withdrawing": lambda: ({"process_class": EndsAtOnce}, []),
    "all that a broker leads is opened while it leaves": lambda: (
        {},
        [patch.object(Process, "open_no_more", lambda _: None)],
    ),
}


def found(name, seeds):
    """The first seed that shows the bug, with what it breaks; None if none does."""
    for seed in seeds:
        options, patches = BUGS[name]()
        for one in patches:
            one.start()
        try:
            broken = CompanyWorld(seed, **options).run()
        except (AssertionError, KeyError) as error:
            broken = repr(error)
        finally:
            for one in patches:
                one.stop()
        if broken:
            return seed, broken
    return None
