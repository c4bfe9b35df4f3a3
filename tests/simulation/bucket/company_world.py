"""Several machines, links between them and one store, in virtual time from one seed; clients that append and read; and what must hold.

- what a client was told is in the log for ever, once, and at its offset
- what a reader was shown is not taken back: no reader that asks later is shown less
- every broker has the same journal
- once faults are over, all partitions are led and served within a while, and no broker stays away
"""

import random

from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.journal_objects import decode_log_entry
from horolog.broker.bucket.names import LOG, key
from tests.simulation.bucket.processes import PARTITIONS, TOPIC, Process
from tests.support.simulated_store import CALM, Schedule, SimulatedStore

FAULTS_END_S = 60
REST_S = 60
SERVED_WITHIN_S = 30
LATEST_S = 10
"""When requests to the store have arrived that were under way."""
KINDS = ("kill", "pause", "cut", "stop", "told", "withdrawn", "unregistered")
"""What happens in a world: faults, answers to producers, and starts that end early."""


class PromiseBroken(Exception):
    """A promise is broken."""


class SimulatedMachine:
    """A machine with a disk and a clock; it runs a process, or none."""

    def __init__(self, world, node):
        self.world, self.node = world, node
        self.rate, self.offset = world.chance.uniform(0.99, 1.01), world.chance.uniform(0, 1e6)
        self.awake_at, self.last_wal, self.process = 0.0, None, None

    def now(self):
        return self.offset + self.rate * self.world.schedule.now

    def start(self):
        if self.process is None:
            self.process = self.world.process_class(self, self.last_wal)

    def end_process(self):
        if self.process is not None:
            self.process.die()
            self.process = None


class SimulatedLinks:
    """Connections between machines: pings and their answers are late, or lost where a link is cut."""

    def __init__(self, world):
        self.world, self.cuts = world, set()

    def ping(self, sender, node, number, done):
        schedule, chance = self.world.schedule, self.world.chance
        is_open = [True]

        def answered(pong):
            if is_open.pop() if is_open else False:
                sender.when_awake(lambda: done(pong))

        schedule.later(2.0, lambda: answered(None))
        if (sender.node, node) in self.cuts:
            return
        target = self.world.machines[node].process
        delay = chance.uniform(0.001, 0.02)
        if target is None or not target.listens:
            schedule.later(delay, lambda: sender.when_awake(lambda: sender.watch.refused(node)))
            schedule.later(delay, lambda: answered(None))
            return

        def back(pong):
            if (node, sender.node) not in self.cuts:
                schedule.later(delay, lambda: answered(pong))

        schedule.later(delay, lambda: target.when_awake(lambda: target.watch.pinged(number, back)))


class CompanyWorld:
    """Everything, from one seed."""

    def __init__(self, seed, weather=None, *, process_class=Process, brokers=3, faults=True):
        self.chance = random.Random(seed)
        self.schedule = Schedule()
        self.store = SimulatedStore(self.schedule, seed + 1, weather)
        self.process_class, self.has_faults = process_class, faults
        self.nonces = self.records = 0
        self.links = SimulatedLinks(self)
        self.machines = {node: SimulatedMachine(self, node) for node in range(1, brokers + 1)}
        self.acknowledged, self.shown, self.met = {}, {}, dict.fromkeys(KINDS, 0)
        self.pending = []
        self.refused = set()
        """Records of which producers were told that they are not written."""
        for node, machine in self.machines.items():
            self.schedule.later(node * self.chance.uniform(0, 1), machine.start)
        self.schedule.later(1, self.client)
        if faults:
            self.schedule.later(5, self.fault)

    def nonce(self):
        self.nonces += 1
        return b"%16d" % self.nonces

    def processes(self):
        return [one.process for one in self.machines.values() if one.process is not None]

    # -- clients

    def client(self):
        """A producer's record, and a reader's look, at a random broker that answers."""
        place = (TOPIC, self.chance.randrange(PARTITIONS))
        awake = [one for one in self.processes() if one.machine.awake_at <= self.schedule.now and one.watch]
        for process in self.chance.sample(awake, len(awake)):
            self.records += 1
            record = (self.records, process.node)
            led = process.append(place, record)
            if led is not None:
                self.pending.append((process, place, led, len(led.records) - 1, record))
        for process in awake:
            led = process.high_watermark(place)
            if led is not None:
                self.show(place, led)
        if self.schedule.now < FAULTS_END_S + REST_S:
            self.schedule.later(self.chance.uniform(0.02, 0.1), self.client)

    def verify_acknowledged(self, process):
        """Records of this process that are safe now: their producers get answers."""
        left = []
        for one in self.pending:
            of, place, led, offset, record = one
            if of is process and led.high_watermark > offset:
                self.tell(place, offset, record)
            elif not of.is_dead:
                left.append(one)
        self.pending = left

    def tell(self, place, offset, record):
        self.met["told"] += 1
        known = self.acknowledged.setdefault((place, offset), record)
        if known != record:
            raise PromiseBroken(f"two records at {place[1]}:{offset}: {known} and {record}")

    def show(self, place, led):
        """A reader sees all records below the high watermark."""
        before = self.shown.get(place, [])
        seen = led.records[: led.high_watermark]
        if len(seen) < len(before) or seen[: len(before)] != before:
            raise PromiseBroken(f"partition {place[1]}: {len(before)} records were shown, now {len(seen)}")
        self.shown[place] = list(seen)

    def unregistered(self, process):
        """It has ended without being a member, also once all that was under way has arrived."""
        self.met["unregistered"] += 1

        def check():
            member = self.journal().members.get(process.node)
            if member is not None and member.host == process.host:
                raise PromiseBroken(f"broker {process.node} has ended while it registered, and is a member")

        self.schedule.later(LATEST_S, check)

    # -- faults

    def fault(self):
        if self.schedule.now >= FAULTS_END_S:
            return
        self.schedule.later(self.chance.uniform(0.5, 12), self.fault)
        machine = self.chance.choice(list(self.machines.values()))
        kind = self.chance.choice(["kill", "pause", "cut", "stop"])
        self.met[kind] += 1
        if kind == "kill":
            machine.end_process()
            if self.chance.random() < 0.5:
                machine.last_wal = None  # its disk is lost
            self.schedule.later(self.chance.choice([0.2, 3, 20]), machine.start)
        elif kind == "pause":
            machine.awake_at = self.schedule.now + self.chance.choice([0.5, 3, 10, 25])
        elif kind == "cut":
            other = self.chance.choice(list(self.machines))
            cuts = {(machine.node, other)} | ({(other, machine.node)} if self.chance.random() < 0.5 else set())
            self.links.cuts |= cuts
            self.schedule.later(self.chance.uniform(1, 20), lambda: self.links.cuts.difference_update(cuts))
        elif machine.process is not None:
            machine.process.stop()
            self.schedule.later(self.chance.uniform(1, 10), machine.start)

    # -- the end

    def run(self):
        """The broken promise, or nothing."""
        try:
            self.schedule.run(until=FAULTS_END_S)
            self.links.cuts.clear()
            self.store.weather = CALM
            for machine in self.machines.values():
                machine.awake_at = 0.0
            self.schedule.run(until=FAULTS_END_S + SERVED_WITHIN_S)
            for machine in self.machines.values():
                machine.start()
            self.schedule.run(until=FAULTS_END_S + REST_S + 10)
            self.check_end()
        except PromiseBroken as broken:
            return str(broken)
        return ""

    def journal(self):
        state = BucketState()
        while (data := self.store.objects.get(key(LOG, state.number + 1))) is not None:
            state = state.apply(decode_log_entry(data, state.number + 1).entry)
        return state

    def check_end(self):
        state = self.journal()
        for process in self.processes():
            mine = process.changes.state if process.watch else None
            if mine is None or mine != state:
                raise PromiseBroken(
                    f"{process.node} has not the journal's state: {mine and mine.number} of {state.number}"
                )
        if sorted(state.members) != sorted(self.machines):
            raise PromiseBroken(f"members are {sorted(state.members)}")
        for index in range(PARTITIONS):
            place = (TOPIC, index)
            leaders = [one for one in self.processes() if one.high_watermark(place) is not None]
            if len(leaders) != 1:
                raise PromiseBroken(f"partition {index} is served by {[one.node for one in leaders]}")
            log = leaders[0].served[place].records
            for (of, offset), record in self.acknowledged.items():
                if of == place and (offset >= len(log) or log[offset] != record):
                    raise PromiseBroken(f"{index}:{offset} is lost")
            written = self.refused.intersection(log)
            if written:
                raise PromiseBroken(f"partition {index} has {min(written)}, which was refused")
            if len(set(log)) != len(log):
                raise PromiseBroken(f"partition {index} has a record twice")
