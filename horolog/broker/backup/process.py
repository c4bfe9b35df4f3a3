"""The process that backs up a broker: it runs beside the broker, and each of its rounds asks where the logs end at that moment.

It hears and says lines of JSON. The first line has its orders (`BackupOrders`); then

    {"ask": "ends"}                                     it asks, and hears {"ends": [[topic, partition, base offset, bytes], ...]},
                                                        or null if the broker could not note all at one instant
    {"moment": n, "time_ms": t, "shipped_bytes": b, "is_exact": true}    a round has made this moment
    {"fault": "..."}                                    a round has failed, and the next one goes on where it ended; or no request
                                                        to the store has succeeded for a while; or the disk has not answered
    {"alive": true}                                     it runs, said each second: one that is stopped says nothing

It ends with its input, which is how it learns that the broker has ended. The broker never waits for it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple, NoReturn

from horolog.base.clock import Clock, SystemClock
from horolog.broker.backup.looking import Ends, SourceFolders
from horolog.broker.backup.pacing import BytePace
from horolog.broker.backup.rounds import BackupTaken, Means, RoundFailed, Rounds
from horolog.broker.backup.silence import HeardDisk, HeardStore, look_on
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.log.files import CheckpointError
from horolog.broker.log.storage import DataFolderError, StorageFault
from horolog.stores.faults import StoreError
from horolog.stores.object_store import ObjectStore
from horolog.stores.opening import open_store

NICENESS = 15
"""A broker that needs all of a processor keeps 96.6 % of it: a backup may then ship 12 MiB a second."""
LEAST_PAUSE_S = 0.2
FAULTS = (BackupTaken, RoundFailed, DataFolderError, StorageFault, CheckpointError, StoreError, FormatError)


class BackupOrders(NamedTuple):
    """What a backup does, as its broker says it."""

    url: str
    endpoint: str
    every_ms: int
    history_ms: int
    bytes_per_second: int
    data_dirs: Sequence[str]


class Talk:
    """The lines to and from the broker."""

    def __init__(self, say: Callable[[str], object], hear: Callable[[], str]) -> None:
        self._say = say
        self._hear = hear

    def __repr__(self) -> str:
        return f"<Talk by {self._say!r}>"

    def say(self, message: dict[str, Any]) -> None:
        self._say(json.dumps(message) + "\n")

    def hear(self) -> Any:
        return json.loads(self._hear())

    def ends(self) -> Ends:
        """Where the logs that are open end now, all at one instant; none if the broker cannot say."""
        self.say({"ask": "ends"})
        return {(topic, index): (base, size) for topic, index, base, size in self.hear()["ends"] or ()}


def rounds_of(orders: BackupOrders, clock: Clock, store: ObjectStore, disk: HeardDisk) -> Rounds:
    pace = BytePace(orders.bytes_per_second, clock.monotonic, time.sleep)
    means = Means(pace, lambda: uuid.uuid4().hex, time.sleep, orders.history_ms)
    return Rounds(SourceFolders(orders.data_dirs, disk.storage, clock.wall_ms), store, means)


def serve(
    rounds: Rounds, orders: BackupOrders, talk: Talk, now: Callable[[], float], sleep: Callable[[float], None]
) -> NoReturn:
    """One round after the other, begun at equal distances unless they are longer."""
    while True:
        began_s = now()
        talk.say(_round(rounds, talk.ends))
        sleep(max(began_s + orders.every_ms / 1000 - now(), LEAST_PAUSE_S))


def _round(rounds: Rounds, take_ends: Callable[[], Ends]) -> dict[str, Any]:
    try:
        done = rounds.run(take_ends)
    except FAULTS as error:
        return {"fault": str(error)}
    made = done.moment
    return {
        "moment": made.number,
        "time_ms": made.time_ms,
        "shipped_bytes": done.shipped_bytes,
        "is_exact": made.is_exact,
    }


def read_on(lines: Iterable[str], heard: SimpleQueue[str], end: Callable[[], object]) -> None:
    """Hand on each line; the end of the lines ends the process, whatever it does at that time."""
    for line in lines:
        heard.put(line)
    end()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it comes to the whole group; the broker says when it is over
    os.nice(NICENESS)
    heard: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=read_on, args=(sys.stdin, heard, lambda: os._exit(0)), daemon=True).start()

    saying = threading.Lock()

    def say(text: str) -> None:
        with saying:
            sys.stdout.write(text)
            sys.stdout.flush()

    talk = Talk(say, heard.get)
    orders = BackupOrders(**talk.hear())
    clock = SystemClock()
    store = HeardStore(open_store(orders.url, orders.endpoint), orders.url, clock.monotonic)
    disk = HeardDisk(clock.monotonic)
    looking = ((store.silence, disk.silence), talk.say, time.sleep)
    threading.Thread(target=look_on, args=looking, daemon=True).start()
    serve(rounds_of(orders, clock, store, disk), orders, talk, clock.monotonic, time.sleep)


if __name__ == "__main__":
    main()
