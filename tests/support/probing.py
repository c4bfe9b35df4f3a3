"""Probes one broker repeatedly with one record each, over raw frames, to measure when it is away and for how long."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from benchmarks import frames
from benchmarks.peer import BrokerError, Peer

PAUSE_S = 0.005
ANSWER_S = 5.0
PRODUCE_VERSION = 3


class Beat(NamedTuple):
    """One request that was answered without an error."""

    sent_s: float
    answered_s: float

    @property
    def latency_ms(self) -> float:
        return (self.answered_s - self.sent_s) * 1000


class Probe:
    """Writes to one partition at one address, from a thread, until it is stopped."""

    def __init__(self, address: str, topic: str, partition: int) -> None:
        self.address = address
        self.beats: list[Beat] = []
        records = frames.batch([b"x" * 100], time.time_ns() // 1_000_000)
        self._frame = frames.produce(PRODUCE_VERSION, topic, records, acks=1, partition=partition)
        self._error_at = frames.produce_error_at(topic) - 8  # a response comes without length and correlation id
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __repr__(self) -> str:
        return f"<Probe of {self.address}: {len(self.beats)} answers>"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(2 * ANSWER_S)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with Peer(self.address, ANSWER_S) as peer:
                    self._ask_again_and_again(peer)
            except (OSError, BrokerError):
                time.sleep(PAUSE_S)

    def _ask_again_and_again(self, peer: Peer) -> None:
        while not self._stopped.wait(PAUSE_S):
            sent_s = time.monotonic()
            (error,) = struct.unpack_from(">h", peer.call(self._frame), self._error_at)
            if not error:
                self.beats.append(Beat(sent_s, time.monotonic()))

    def absence_s(self, since_s: float) -> float | None:
        """From that moment until a request sent after it was answered; None: none so far."""
        first = None
        for beat in reversed(self.beats):
            if beat.sent_s < since_s:
                break
            first = beat
        return None if first is None else first.answered_s - since_s

    def between(self, from_s: float, to_s: float) -> list[float]:
        """Latencies of requests sent in a span, in milliseconds."""
        return [beat.latency_ms for beat in self.beats if from_s <= beat.sent_s < to_s]


@contextmanager
def probing(probes: list[Probe]) -> Iterator[None]:
    with ExitStack() as held:
        for probe in probes:
            held.callback(probe.stop)
            probe.start()
        yield
