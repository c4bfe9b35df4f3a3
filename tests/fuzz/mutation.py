"""Our own seeded mutation loop: no dependency, a bound on time per input, and new places of refusal as its sense of progress."""

import random
import struct
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

Target = Callable[[bytes], object]

MAX_INPUT_BYTES = 1 << 16
MAX_CPU_SECONDS = 2.0
MAX_POOL = 4000
MAX_FINDINGS = 20
EDGES = (
    0,
    1,
    2,
    7,
    8,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
)


@dataclass(frozen=True)
class Finding:
    """An input that broke a promise."""

    data: bytes
    reason: str
    traceback: str


@dataclass
class Report:
    """What a run did."""

    inputs: int = 0
    pool: int = 0
    slowest_seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def summary(self, name: str) -> str:
        return f"{name}: {self.inputs} inputs, pool {self.pool}, slowest {self.slowest_seconds * 1000:.0f} ms, findings {len(self.findings)}"


def check(target: Target, data: bytes) -> float:
    """Run one input; the cpu time it took, which is bounded. Whatever escapes from a target is a finding."""
    began = time.process_time()
    target(data)
    took = time.process_time() - began
    assert took < MAX_CPU_SECONDS, f"{len(data)} bytes took {took:.1f} s of cpu"
    return took


def run(target: Target, seeds: list[bytes], seconds: float, seed: int, most_inputs: int = sys.maxsize) -> Report:
    """Mutate for so many seconds, or so many inputs. A target returns what it wants to be told apart (where it refused), or nothing."""
    rng = random.Random(seed)
    report = Report()
    pool = list(seeds) or [b""]
    seen: set[object] = set()
    known: set[str] = set()
    waiting = list(pool)
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(report.findings) < MAX_FINDINGS and report.inputs < most_inputs:
        fresh = not waiting
        data = mutate(rng, pool) if fresh else waiting.pop()
        report.inputs += 1
        try:
            began = time.process_time()
            place = target(data)
            took = time.process_time() - began
            assert took < MAX_CPU_SECONDS, f"{len(data)} bytes took {took:.1f} s of cpu"
        except Exception as error:  # noqa: BLE001 - whatever escapes is a finding
            _note(report, known, data, error)
            continue
        report.slowest_seconds = max(report.slowest_seconds, took)
        if fresh and place is not None and place not in seen and len(pool) < MAX_POOL:
            pool.append(data)
        seen.add(place)
    report.pool = len(pool)
    return report


def _note(report: Report, known: set[str], data: bytes, error: Exception) -> None:
    where = traceback.extract_tb(error.__traceback__)[-1]
    reason = f"{type(error).__name__}: {error}"
    if (key := f"{type(error).__name__} {where.filename}:{where.lineno}") not in known:
        known.add(key)
        report.findings.append(Finding(data, reason[:300], "".join(traceback.format_exception(error))))


def mutate(rng: random.Random, pool: list[bytes]) -> bytes:
    data = bytearray(rng.choice(pool))
    for _ in range(1 + min(int(rng.expovariate(0.7)), 8)):
        rng.choice(MUTATIONS)(rng, data, pool)
    return bytes(data[:MAX_INPUT_BYTES])


def _flip_bit(rng: random.Random, data: bytearray, _: list[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set_byte(rng: random.Random, data: bytearray, _: list[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _set_number(rng: random.Random, data: bytearray, _: list[bytes]) -> None:
    """An edge value of some width somewhere: lengths, counts, offsets."""
    width = rng.choice((2, 4, 8))
    if len(data) >= width:
        at = rng.randrange(len(data) - width + 1)
        number = rng.choice(EDGES) if rng.random() < 0.7 else rng.randrange(len(data) * 2)
        data[at : at + width] = (number & ((1 << 8 * width) - 1)).to_bytes(width, "big")


def _add_to_number(rng: random.Random, data: bytearray, _: list[bytes]) -> None:
    if len(data) >= 4:
        at = rng.randrange(len(data) - 3)
        number = struct.unpack_from(">I", data, at)[0] + rng.choice((-2, -1, 1, 2, 256, -256))
        struct.pack_into(">I", data, at, number & 0xFFFFFFFF)


def _cut(rng: random.Random, data: bytearray, _: list[bytes]) -> None:
    if data:
        start = rng.randrange(len(data))
        del data[start : start + 1 + int(rng.expovariate(1 / 8))]


def _truncate(rng: random.Random, data: bytearray, _: list[bytes]) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _insert(rng: random.Random, data: bytearray, _: list[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(1 + int(rng.expovariate(1 / 6)))


def _repeat(rng: random.Random, data: bytearray, _: list[bytes]) -> None:
    if data:
        start = rng.randrange(len(data))
        piece = data[start : start + 1 + int(rng.expovariate(1 / 40))]
        at = rng.randrange(len(data) + 1)
        data[at:at] = piece * rng.choice((1, 1, 2, 8))


def _splice(rng: random.Random, data: bytearray, pool: list[bytes]) -> None:
    other = rng.choice(pool)
    at = rng.randrange(len(data) + 1)
    data[at:] = other[rng.randrange(len(other) + 1) :]


MUTATIONS = (
    _flip_bit,
    _set_byte,
    _set_byte,
    _set_number,
    _set_number,
    _add_to_number,
    _cut,
    _truncate,
    _insert,
    _repeat,
    _splice,
)
