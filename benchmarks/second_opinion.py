"""The same loads driven by another generator, a program whose path is given: where both agree, neither was the bottleneck.

The program takes `MODE -addr ... -topic ... -secs ...` and prints one JSON object, as the generator `loadgen` does.
"""

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from benchmarks import fill, load, process
from benchmarks.load import MODES, Options
from benchmarks.peer import BrokerError

TIMEOUT_SECONDS = 180
# Its name for a mode of ours, and what its answer counts in.
NAMES = {
    "raw": ("raw", "rec_s"),
    "smallreq": ("raw", "req_s"),
    "oldproduce": ("raw", "rec_s"),
    "paced": ("paced", ""),
    "endtoend": ("paced", ""),
    "consume": ("consume", "rec_s"),
    "timelookup": ("timelookup", "req_s"),
}
assert set(NAMES) < set(MODES)
OURS_ALONE = frozenset({"--mixed", "--codec", "--partitions", "--headers"})


def drives(arguments: Sequence[str]) -> bool:
    """Whether the other generator has a load of this kind."""
    return arguments[0] in NAMES and OURS_ALONE.isdisjoint(arguments)


def run(program: str, mode: str, options: Options) -> dict[str, Any]:
    """One run; the broker's CPU is taken around the whole of it, the rate from what the program says."""
    if mode in ("consume", "timelookup"):
        return _measure(program, mode, options, load.filled(options))
    with load.RunTopic(options, "second") as topic:
        if options.warm_seconds:
            _ask([program, *arguments(mode, options, topic, options.warm_seconds)])
        return _measure(program, mode, options, topic)


def _measure(program: str, mode: str, options: Options, topic: str) -> dict[str, Any]:
    before = process.fine_cpu_seconds(options.pid) if options.pid else 0.0
    said = _ask([program, *arguments(mode, options, topic, options.seconds)])
    return result(mode, said, options.seconds, process.fine_cpu_seconds(options.pid) - before if options.pid else None)


def result(mode: str, said: dict[str, Any], seconds: float, broker_cpu_s: float | None) -> dict[str, Any]:
    """Its words in ours; refused requests are no result."""
    if said.get("bad") or said.get("errors") or said.get("misses"):
        raise BrokerError(f"{mode}: {said}")
    key = NAMES[mode][1]
    kind = "e2e" if mode == "endtoend" else "ack"
    counted = {"timelookup": "lookups", "smallreq": "reqs", "paced": "sent", "endtoend": "sent"}
    count = int(said[counted.get(mode, "records")])
    found: dict[str, Any] = {"mode": mode, "count": count, "rate": said[key] if key in said else count / seconds}
    for ours, theirs in (("p50_ms", "p50_ms"), ("p99_ms", "p99_ms"), ("p999_ms", "p999_ms")):
        if f"{kind}_{theirs}" in said:
            found[ours] = said[f"{kind}_{theirs}"]
    if broker_cpu_s is not None:
        found["cpu_s_per_million"] = broker_cpu_s / count * 1e6
    return found


def arguments(mode: str, options: Options, topic: str, seconds: float) -> list[str]:
    """Its flags for one of our modes."""
    said = [
        NAMES[mode][0],
        "-addr",
        options.address,
        "-topic",
        topic,
        "-secs",
        str(seconds),
        "-size",
        str(options.size_bytes),
    ]
    said += ["-acks", str(options.acks)]
    if mode in ("paced", "endtoend"):
        return [*said, "-rate", str(options.rate), "-linger", "0", *(["-e2e"] if mode == "endtoend" else [])]
    if mode == "timelookup":
        said += ["-t0", str(fill.FIRST_TIMESTAMP), "-span", str(options.fill_records)]
    said += ["-conns", str(options.connections), "-inflight", str(options.in_flight), "-m", str(options.records)]
    return [*said, "-fmt", "v1" if mode == "oldproduce" else "v2"]


def _ask(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    if done.returncode != 0:
        raise BrokerError(f"{command[1]}: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
