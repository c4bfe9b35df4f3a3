"""Brokers whose starts fail after they have registered, or that are stopped while they register: they withdraw, and a while later their
machine starts another process.

Such a process may have led partitions and taken records, as one does whose second listener cannot have its port.
"""

import random

from horolog.broker.base.answers import run
from horolog.broker.bucket.registration import Registration
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.store_journal import StoreJournal
from tests.simulation.bucket.company_world import FAULTS_END_S
from tests.simulation.bucket.processes import Process
from tests.support.simulated_store import StoreFront

SHARE = 0.6
STOPPED_SHARE = 0.5
LONGEST_S = 3.0
LONGEST_REGISTRATION_S = 0.3


class FailingStart(Process):
    """Of the starts until the faults end, most fail."""

    async def start(self, known_dead):
        chance = random.Random(f"{self.world.schedule.now} {self.machine.offset}")
        fails = self.world.schedule.now < FAULTS_END_S and chance.random() < SHARE
        if fails and chance.random() < STOPPED_SHARE:
            self.later(chance.uniform(0, LONGEST_REGISTRATION_S), self.stop_registering)
        await super().start(known_dead)
        if fails and not self.is_dead:
            self.later(chance.uniform(0, LONGEST_S), self.fail)

    def stop_registering(self):
        if self.watch is None:
            self.stop()

    def end_unregistered(self):
        super().end_unregistered()
        self.world.schedule.later(1, self.machine.start)

    def fail(self):
        if self.is_stopping or self.is_dead:
            return
        self.is_stopping, self.listens = True, False
        self.access.close()
        self.served.clear()
        self.watch.end()
        run(self.withdraw())

    async def withdraw(self):
        access = StoreAccess(StoreFront(self, self.world.store), self.pause)
        journal = StoreJournal(access, self.world.nonce, self.now)
        await Registration(access, journal, self.world.nonce, self.probe).withdraw(self.joined)
        self.world.met["withdrawn"] += 1
        self.machine.end_process()
        self.world.schedule.later(1, self.machine.start)
