"""Every case of the prober against a broker process: each outcome equals that of at least one real broker, or is a known difference."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.broker_process import BROKERS_VARIABLE, PROJECT, WORKERS_VARIABLE
from tests.support.file_lock import alone
from tests.support.fixtures import shared_broker
from tests.vendor.wire_prober.cases import CASES
from tests.vendor.wire_prober.score import Verdict, counts, differences, judge, oracles
from tests.wire import known_differences

pytestmark = pytest.mark.timeout(600)
PROBE = PROJECT / "tests" / "vendor" / "wire_prober" / "probe.py"
JOBS = 4
WORKERS = int(os.environ.get(WORKERS_VARIABLE, "1"))
OVER_A_STORE = BROKERS_VARIABLE in os.environ


def scored() -> set[str]:
    return {name for _, cases in oracles() for name, case in cases.items() if case["status"] == "ok"}


SCORED = scored()
JUDGED = [case for case in CASES if case.name in SCORED]
FAST = [case.name for case in JUDGED if not case.slow]
SLOW = [case.name for case in JUDGED if case.slow]
GROUPS_VERSION = "3.9"
GROUPS = {
    name: case
    for version, cases in oracles()
    if version.startswith(GROUPS_VERSION)
    for name, case in cases.items()
    if name.startswith(("f.", "b.t.", "b.i.")) and counts(version, name, case)
}
"""Cases of groups, transactions and idempotent producers, and what Kafka 3.9 answers."""


def probe(folder: Path, *flags: str) -> dict[str, Any]:
    """Run the prober as its users do, against a broker of its own with the target configuration."""
    with shared_broker(folder, brokers=1) as broker:
        out = folder / "result.json"
        command = [sys.executable, str(PROBE), broker.address, "--out", str(out), "--jobs", str(JOBS), *flags]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=500, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        result: dict[str, Any] = json.loads(out.read_text())
        result["unhandled"] = [line for line in broker.log().splitlines() if "Traceback" in line]
        return result


def once_for_all_workers(tmp_path_factory: pytest.TempPathFactory, name: str, *flags: str) -> dict[str, Any]:
    """The first worker of a parallel run probes, the others wait for its result."""
    shared = tmp_path_factory.getbasetemp().parent / f"prober-{name}"
    shared.mkdir(exist_ok=True)
    kept = shared / "kept.json"
    with alone(shared / "lock"):
        if not kept.exists() or "PYTEST_XDIST_WORKER" not in os.environ:
            kept.write_text(json.dumps(probe(tmp_path_factory.mktemp(name), *flags)))
        loaded: dict[str, Any] = json.loads(kept.read_text())
        return loaded


@pytest.fixture(scope="session")
def fast(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return once_for_all_workers(tmp_path_factory, "fast", "--no-slow")


@pytest.fixture(scope="session")
def slow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return once_for_all_workers(tmp_path_factory, "slow", "--only-slow")


@pytest.fixture(scope="session")
def fast_verdicts(fast: dict[str, Any]) -> dict[str, Verdict]:
    return judge(fast["cases"])


@pytest.fixture(scope="session")
def slow_verdicts(slow: dict[str, Any]) -> dict[str, Verdict]:
    return judge(slow["cases"])


def without_other_workers(found: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Of several workers the first is asked: that there are others, Metadata says of every topic, and no recorded broker did."""
    return [one for one in found if "/brokers/1/" not in one[0]] if WORKERS > 1 else found


def skip_where_known(name: str, found: list[tuple[str, str, str]], table: Mapping[str, str]) -> None:
    """End the test of a case that differs as it is known to, also because several workers serve, or one broker over a store."""
    of_workers = known_differences.OF_SEVERAL_WORKERS if WORKERS > 1 else {}
    of_store = known_differences.OVER_A_STORE if OVER_A_STORE else {}
    why = table.get(name) or of_workers.get(name) or of_store.get(name)
    if found and why:
        pytest.skip(f"known difference: {why}")


def check(name: str, verdicts: dict[str, Verdict]) -> None:
    if name not in verdicts:
        pytest.skip("every recorded broker misbehaves here")
    verdict = verdicts[name]
    found = without_other_workers(verdict.differences)
    told = "".join(f"\n  {path}: real {real}, got {got}" for path, real, got in found[:12])
    skip_where_known(name, found, known_differences.CASES)
    assert not found, f"{verdict.description} [nearest: {verdict.nearest}]{told}"
    assert name not in known_differences.CASES, "holds now: take it out of the table of known differences"


@pytest.mark.parametrize("name", FAST)
def test_the_outcome_is_that_of_a_real_broker(name: str, fast_verdicts: dict[str, Verdict]) -> None:
    check(name, fast_verdicts)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_the_slow_outcome_is_that_of_a_real_broker(name: str, slow_verdicts: dict[str, Verdict]) -> None:
    check(name, slow_verdicts)


def check_group(name: str, results: dict[str, Any]) -> None:
    found = without_other_workers(differences(GROUPS[name], results.get(name)))
    skip_where_known(name, found, known_differences.GROUPS_IN_3_9)
    assert not found, f"{GROUPS[name]['desc']}: {found[:12]}"
    assert name not in known_differences.GROUPS_IN_3_9, "holds now: take it out of the table of known differences"


@pytest.mark.parametrize("name", [name for name in FAST if name in GROUPS])
def test_groups_and_transactions_are_answered_as_by_kafka_3_9(name: str, fast: dict[str, Any]) -> None:
    check_group(name, fast["cases"])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SLOW if name in GROUPS])
def test_slow_groups_and_transactions_are_answered_as_by_kafka_3_9(name: str, slow: dict[str, Any]) -> None:
    check_group(name, slow["cases"])


def test_the_broker_outlives_the_probe_and_was_never_surprised(fast: dict[str, Any]) -> None:
    assert fast["meta"]["alive_after"]
    assert fast["unhandled"] == []


def test_every_known_difference_names_a_case() -> None:
    names = {case.name for case in JUDGED}
    assert set(known_differences.CASES) <= names
    assert set(known_differences.GROUPS_IN_3_9) <= GROUPS.keys()
