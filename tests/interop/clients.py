"""Clients of other languages: what each is asked to do, how its program is run over a broker, and what it printed.

A program gets the broker's address, a prefix for names, a file with the records and lookups, and names of checks. The topic of a check is
`PREFIX-CHECK`. It prints one line of JSON for each check: `{"check": ..., "ok": ..., "detail": ...}`. One process does all
checks of a client, for starting one is dear.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.samples import BASE_MS, BEYOND_MS, CODECS, SAMPLES, TARGETS, Sample, first_at_or_after
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

RUN_TIMEOUT_SECONDS = 240
HOUR_MS = 3_600_000

CHECKS: dict[str, str] = {
    **{f"codec_{codec}": f"keys, headers and own times come back, {codec}" for codec in CODECS},
    "offsets_by_time": "lookups by time",
    "max_timestamp": "the largest time",
    "log_append_time": "LogAppendTime",
    "too_old_refused": "a time out of bounds is the client's own error",
    "group_rebalance": "two members share, one leaves",
    "group_resume": "a group goes on where it was",
    "group_protocol_consumer": "the same, KIP-848",
    "resume_protocol_consumer": "a KIP-848 group goes on where it was",
    "idempotent": "idempotent producer",
    "transactions": "commit, abort, commit",
    "transaction_offsets": "offsets in transactions",
    "admin_topics": "topics and configurations",
    "admin_groups": "groups and their offsets",
}
MADE_BY_THE_CLIENT = {"admin_topics"}
OF_FOUR_PARTITIONS = {
    "group_rebalance",
    "group_resume",
    "group_protocol_consumer",
    "resume_protocol_consumer",
    "admin_groups",
}
CONFIGS = {
    "log_append_time": {"message.timestamp.type": "LogAppendTime"},
    "too_old_refused": {"message.timestamp.before.max.ms": str(HOUR_MS)},
}

CONSUMER_PROTOCOL = frozenset({"group_protocol_consumer", "resume_protocol_consumer"})


@dataclass(frozen=True)
class Client:
    """One client release; `build` gives the command of its program."""

    name: str
    build: Callable[[Path], Sequence[str]] = field(repr=False)
    cannot: frozenset[str] = frozenset()

    @property
    def checks(self) -> list[str]:
        return [check for check in CHECKS if check not in self.cannot]


class Result(NamedTuple):
    """What a client said about one check."""

    ok: bool
    detail: str


def plan_lines(samples: Iterable[Sample] = SAMPLES) -> Iterator[str]:
    """The records in the order in which they are written, then the lookups and what each must find."""
    for one in samples:
        headers = ",".join(f"{name}={value.hex()}" for name, value in one.headers)
        yield "\t".join(("record", str(one.timestamp), _hex(one.key), _hex(one.value), headers))
    for target in [*TARGETS, BASE_MS + 1, BEYOND_MS]:
        offset = -1 if target == BEYOND_MS else first_at_or_after(target)[0]
        yield f"lookup\t{target}\t{offset}"


def _hex(data: bytes | None) -> str:
    return "-" if data is None else data.hex()


def create_topics(broker: BrokerProcess, prefix: str, checks: Iterable[str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    wanted = [
        NewTopic(f"{prefix}-{check}", 4 if check in OF_FOUR_PARTITIONS else 1, 1, config=CONFIGS.get(check, {}))
        for check in checks
        if check not in MADE_BY_THE_CLIENT
    ]
    for future in admin.create_topics(wanted).values():
        future.result(20.0)


def run(client: Client, broker: BrokerProcess, scratch: Path) -> dict[str, Result]:
    """All checks of one client; what it did not come to is a failure that shows the end of its standard error."""
    prefix = unique(client.name.replace("/", "-"))
    create_topics(broker, prefix, client.checks)
    plan = scratch / "plan.tsv"
    plan.write_text("".join(f"{line}\n" for line in plan_lines()))
    command = [*client.build(scratch), broker.address, prefix, str(plan), *client.checks]
    said, complaints = execute(command, scratch)
    results = dict(read_results(said))
    missing = Result(ok=False, detail=f"the program did not come to it\n{complaints[-3000:]}")
    return {check: results.get(check, missing) for check in client.checks}


def execute(command: Sequence[str], scratch: Path) -> tuple[str, str]:
    """Standard output and error of a program, which is killed when its time is up."""
    output, errors = scratch / "stdout", scratch / "stderr"
    with output.open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        try:
            process.wait(RUN_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            err.write(f"\nkilled after {RUN_TIMEOUT_SECONDS} s".encode())
        finally:
            process.kill()
            process.wait(10)
    return output.read_text(errors="replace"), errors.read_text(errors="replace")


def read_results(said: str) -> Iterator[tuple[str, Result]]:
    for line in said.splitlines():
        if line.startswith('{"check"'):
            told = json.loads(line)
            yield told["check"], Result(told["ok"], told["detail"])


class Runs:
    """Runs each client once, when the first of its checks is asked for."""

    def __init__(self, broker: BrokerProcess, scratch: Callable[[str], Path]) -> None:
        self._broker = broker
        self._scratch = scratch
        self._results: dict[str, dict[str, Result]] = {}
        self.seconds: dict[str, float] = {}

    def of(self, client: Client) -> dict[str, Result]:
        if client.name not in self._results:
            began = time.monotonic()
            self._results[client.name] = run(client, self._broker, self._scratch(client.name.replace("/", "-")))
            self.seconds[client.name] = time.monotonic() - began
        return self._results[client.name]


def cases(clients: Iterable[Client]) -> list[object]:
    """Every check of every client as a test of its own."""
    return [pytest.param(client, check, id=f"{client.name}-{check}") for client in clients for check in client.checks]
