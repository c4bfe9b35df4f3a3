"""Real clients on several workers, each of which is killed again and again: what holds of one broker that is killed holds of all of them.

Transactions go over four partitions, so over every worker, and so do the coordinators of transactions and groups. A supervisor gives a
worker up that ends too often in a minute: it is stopped and started again before.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from pathlib import Path

from benchmarks.process import free_range
from horolog.broker.workers.ends import MOST_ENDS
from tests.soak.soak import (
    SETTINGS,
    START_WAIT_SECONDS,
    WAIT_SECONDS,
    alone,
    commits_gone_back,
    create_topics,
    missing,
    read_all,
    wrong_times,
)
from tests.soak.workload import Soak, actors
from tests.support.broker_process import BrokerProcess
from tests.support.waiting import wait_until
from tests.support.worker_processes import workers_of

PARTITIONS = 4
SHARDS = "8"
LEAST_UP_SECONDS, MOST_UP_SECONDS = 0.2, 2.5
BACK_SECONDS = 60.0


def run(folder: Path, kills: int, seed: int, workers: int = 2) -> tuple[Soak, list[str]]:
    """So many kills; the soak, and what was wrong."""
    settings = SETTINGS | {
        "horolog.workers": str(workers),
        "horolog.worker.ports": str(free_range(workers)),
        "offsets.topic.num.partitions": SHARDS,
        "transaction.state.log.num.partitions": SHARDS,
    }
    broker = BrokerProcess(folder / "data", settings).start(START_WAIT_SECONDS)
    try:
        create_topics(broker.address, PARTITIONS)
        soak = Soak(broker.address, seed, PARTITIONS)
        threads = actors(soak)
        for thread in threads:
            thread.start()
        kill_workers(broker, soak, kills, workers)
        soak.stop.set()
        for thread in threads:
            thread.join(WAIT_SECONDS)
        problems = [f"{thread.name}: did not end" for thread in threads if thread.is_alive()]
        times = read_all(broker.address, PARTITIONS)
        final = {place: [(offset, value) for offset, _, value in rows] for place, rows in times.items()}
        problems += soak.failures + soak.history.problems(final) + wrong_times(times, soak.times)
        problems += commits_gone_back(broker.address, soak, final)
        if broker.stop() != 0:
            problems.append(f"the workers did not end well: {broker.log()[-2000:]}")
    finally:
        broker.kill()
    return soak, problems


def kill_workers(broker: BrokerProcess, soak: Soak, kills: int, workers: int) -> None:
    """One at a time, by chance; the next may follow before the last one is back."""
    chance = random.Random(soak.seed)
    ends: Counter[int] = Counter()
    while soak.counts.get("kills", 0) < kills:
        if not alone(soak, chance.uniform(LEAST_UP_SECONDS, MOST_UP_SECONDS)):
            return
        number = chance.randint(1, workers)
        if ends[number] == MOST_ENDS - 1:
            wait_for_all(broker, workers)
            broker.stop()
            broker.start(START_WAIT_SECONDS)
            soak.count("restarts of all")
            ends.clear()
        pid = workers_of(broker).get(number)
        if pid is None:
            continue  # it is being started
        os.kill(pid, signal.SIGKILL)
        ends[number] += 1
        soak.count("kills")
    wait_for_all(broker, workers)
    wait_until(lambda: bool(soak.failures or not missing(soak)), WAIT_SECONDS, "not everything has happened")


def wait_for_all(broker: BrokerProcess, workers: int) -> None:
    wait_until(
        lambda: len(workers_of(broker)) == workers, BACK_SECONDS, f"not all workers are there\n{broker.log()[-3000:]}"
    )
