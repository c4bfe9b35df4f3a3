"""Workers that are killed again and again under load: nothing acknowledged is lost, a worker is back soon, and the other one goes on.

`HOROLOG_KILLS` says how often in all, `HOROLOG_SEED` chooses other victims and moments.
A supervisor gives a worker up that ends too often in a minute, so it is started again in between.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.load import percentile
from benchmarks.peer import Peer, Placed
from benchmarks.process import free_range
from horolog.broker.workers.ends import MOST_ENDS
from tests.support.broker_process import BrokerProcess
from tests.support.probing import Probe, probing
from tests.support.waiting import wait_until
from tests.support.witness import Witness, create, numbers_in
from tests.support.worker_processes import workers_of

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(900)]
KILLS = int(os.environ.get("HOROLOG_KILLS", "50"))
WORKERS = 2
KILLS_PER_LIFE = WORKERS * (MOST_ENDS - 1)
PARTITIONS = 4
PROBED = "probed"
GOAL_S, MOST_MEDIAN_S = 0.5, 4.0
"""The goal, and the time that a machine with other things to do may take."""
BACK_S = 60.0
PATIENT = {"message.timeout.ms": 60_000}
LEAST_UP_S, MOST_UP_S = 0.1, 0.6


def nodes(broker: BrokerProcess) -> Placed:
    """Every worker with its own address, and whom each partition of the probed topic is led by."""
    with Peer(broker.address) as peer:
        return peer.placement([PROBED])


def probes_of(placed: Placed) -> dict[int, Probe]:
    """One at each worker, at a partition that it leads."""
    led = {node: partition for partition, node in placed.leaders[PROBED].items()}
    return {node: Probe(placed.addresses[node], PROBED, partition) for node, partition in led.items()}


class Figures:
    """What was seen of all kills."""

    def __init__(self) -> None:
        self.absences_s: list[float] = []
        self.of_others_ms: list[float] = []
        """Latencies at the worker that goes on, while the other one is away."""
        self.undisturbed_ms: list[float] = []

    def __repr__(self) -> str:
        longest = max(self.absences_s)
        away, otherwise = (
            percentile([one / 1000 for one in each], 0.99) for each in (self.of_others_ms, self.undisturbed_ms)
        )
        return (
            f"{len(self.absences_s)} kills: away for {statistics.median(self.absences_s):.3f} s (median; goal {GOAL_S} s),"
            f" {longest:.3f} s at most; p99 of the other worker meanwhile {away:.2f} ms, otherwise {otherwise:.2f} ms"
        )


def kill_one(broker: BrokerProcess, number: int, probes: dict[int, Probe], figures: Figures) -> None:
    """Kill one worker, and wait until it has answered again."""
    node = sorted(probes)[number - 1]
    pid = workers_of(broker)[number]
    wait_until(
        lambda: probes[node].absence_s(0.0) is not None,
        BACK_S,
        f"worker {number} was never there\n{broker.log()[-3000:]}",
    )
    killed_s = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    wait_until(
        lambda: probes[node].absence_s(killed_s) is not None and workers_of(broker).get(number, pid) != pid,
        BACK_S,
        f"worker {number} does not come back\n{broker.log()[-3000:]}",
    )
    absence_s = probes[node].absence_s(killed_s)
    assert absence_s is not None
    figures.absences_s.append(absence_s)
    for other, probe in probes.items():
        if other != node:
            figures.of_others_ms += probe.between(killed_s, killed_s + absence_s)


def victims(chance: random.Random, kills: int) -> list[int]:
    """Whom to kill, no worker more often than the supervisor bears."""
    rounds = [chance.sample(range(1, WORKERS + 1), WORKERS) for _ in range(-(-kills // WORKERS))]
    return [number for each in rounds for number in each][:kills]


def live_through(
    broker: BrokerProcess, witnesses: Sequence[Witness], kills: int, chance: random.Random, figures: Figures
) -> None:
    """One life of the supervisor, with so many kills."""
    probes = probes_of(nodes(broker))
    with probing(list(probes.values())), ExitStack() as held:
        for witness in witnesses:
            held.enter_context(witness.producing())
            witness.wait_for(100)
        for number in victims(chance, kills):
            up_s = chance.uniform(LEAST_UP_S, MOST_UP_S)
            began_s = time.monotonic()
            time.sleep(up_s)
            for probe in probes.values():
                figures.undisturbed_ms += probe.between(began_s, began_s + up_s)
            kill_one(broker, number, probes, figures)
        for witness in witnesses:
            witness.wait_for(100)


def lives(kills: int) -> Iterator[int]:
    while kills > 0:
        yield min(kills, KILLS_PER_LIFE)
        kills -= KILLS_PER_LIFE


def test_nothing_acknowledged_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("HOROLOG_SEED", "1"))
    chance, figures = random.Random(seed), Figures()
    settings = {"horolog.workers": WORKERS, "horolog.worker.ports": free_range(WORKERS), "log.segment.bytes": 1048576}
    broker = BrokerProcess(tmp_path / "data", {key: str(value) for key, value in settings.items()})
    broker.start()
    try:
        for topic in ("one", "all", PROBED):
            create(broker.address, topic, PARTITIONS)
        witnesses = [
            Witness(broker.address, "one", partitions=PARTITIONS, acks=1, **PATIENT),
            Witness(broker.address, "all", partitions=PARTITIONS, acks=-1, **PATIENT, **{"enable.idempotence": True}),
        ]
        for number, kills in enumerate(lives(KILLS)):
            if number:
                assert broker.stop() == 0, broker.log()[-3000:]
                broker.start()
            live_through(broker, witnesses, kills, chance, figures)
        with capsys.disabled():
            print(f"\nseed {seed}: {figures}; {witnesses}")
        for witness in witnesses:
            assert len(witness.acknowledged) > 1000
            records = numbers_in(broker.address, witness.topic, PARTITIONS)
            witness.check(records, exactly_once=witness.topic == "all")
        assert len(figures.absences_s) == KILLS
        assert statistics.median(figures.absences_s) <= MOST_MEDIAN_S
        assert broker.stop() == 0
    finally:
        broker.kill()
