"""Feeding what the producers sent gives, byte for byte, the files that the real broker wrote."""

import shutil
from pathlib import Path

import pytest

from horolog.broker.log.partition import Partition, log_start
from tests.support import golden
from tests.support.golden import Case
from tests.support.logs import WALL_MS, open_logs, topic_config
from tests.support.produced import appends

RECOMPRESSED = "its compressed sets are made anew by the broker (inner offsets or format change), and no two libraries compress alike"
TRANSACTIONS = "its markers are written by the transaction coordinator, not by a producer's append"

EXCLUDED = {
    "v0-broker09-gzip": "its producer kept no list of batches, and " + RECOMPRESSED,
    "v0-gzip-ct": RECOMPRESSED,
    "v0-gzip-lat": RECOMPRESSED,
    "v0-lz4-ct": RECOMPRESSED,
    "v0-lz4-lat": RECOMPRESSED,
    "v0-snappy-ct": RECOMPRESSED,
    "v0-snappy-lat": RECOMPRESSED,
    "v0conv-lz4-ct": RECOMPRESSED,
    "v0conv-lz4-lat": RECOMPRESSED,
    "v0conv-snappy-ct": RECOMPRESSED,
    "v1conv-gzip-ct": RECOMPRESSED,
    "v2-compacted-txn": TRANSACTIONS,
    "v2-txn": TRANSACTIONS,
    "v2-txn-multiseg": TRANSACTIONS,
}
"""Cases that are not written again, and why."""

SENT_AS = {"v0conv-none-ct": 1, "v0conv-none-lat": 1, "v1conv-none-lat": 0}
"""The format that the client spoke, where the broker stored another."""

MORE = "an append of many messages gets an index entry every index.interval.bytes, not only one; what the entries promise is tested below"
NO_TIMES = "records stored without a time make no time index entry here; the real broker indexed a time it did not keep (finding 8)"
RESTARTED = "written over a clean restart and a kill, which is tested below"
INDEXES = (".index", ".timeindex")
KINDS_EXCLUDED: dict[str, tuple[tuple[str, ...], str]] = {
    "v0-compacted-none": ((".index",), MORE),
    "v0-none-ct": ((".index",), MORE),
    "v0conv-none-ct": (INDEXES, f"{MORE}; {NO_TIMES}"),
    "v0conv-none-lat": (INDEXES, f"{MORE}; {NO_TIMES}"),
    "v1-compacted-none": (INDEXES, MORE),
    "v1-compacted-tombstones": (INDEXES, MORE),
    "v1-none-ct": (INDEXES, MORE),
    "v1-none-lat": (INDEXES, MORE),
    "v1conv-none-lat": (INDEXES, MORE),
    "v2-leader-epochs": ((".timeindex", "leader-epoch-checkpoint", "00000000000000000006.snapshot"), RESTARTED),
}
"""Kinds of file that differ on purpose, and why."""

EMPTY_SNAPSHOT = bytes.fromhex("000148674bc700000000")
"""A snapshot that knows no producer: the real broker writes it at every roll, here no file says the same."""

CASES = sorted({name for name, _ in golden.names()} - EXCLUDED.keys())


def produce_again(case: Case, stage: str, partition: Partition) -> None:
    for sent in appends(case, stage, SENT_AS.get(case.name)):
        overrides = case.topic_config | {
            "message.timestamp.type": "LogAppendTime" if sent.log_append_time else "CreateTime"
        }
        if sent.stored_magic < 2:
            overrides["message.format.version"] = ("0.9.0", "0.10.0")[sent.stored_magic]
        if case.topic_config.get("message.timestamp.type"):
            overrides["message.timestamp.type"] = case.topic_config["message.timestamp.type"]
        partition.configure(topic_config(overrides))
        partition.leader_epoch = sent.leader_epoch
        partition.append(
            sent.data, WALL_MS if sent.now_ms is None else sent.now_ms, produce_version=sent.produce_version
        )
        partition.flush()


def full_stage(case: Case) -> str:
    """The last stage in which nothing had been taken away yet."""
    return "before" if "before" in case.stages else "clean"


def compared(case: Case, stage: str) -> dict[str, bytes]:
    """What must be equal: all files, but of a broker that still ran not those that its active segment finishes later."""
    files = case.files(stage)
    active = max(name[:20] for name in files if name.endswith(".log"))
    kinds, _ = KINDS_EXCLUDED.get(case.name, ((), ""))
    kept = {
        name: data
        for name, data in files.items()
        if not name.endswith((*kinds, "partition.metadata")) and data != EMPTY_SNAPSHOT
    }
    if stage == "before":
        return {name: data for name, data in kept.items() if not (name.startswith(active) and name.endswith(INDEXES))}
    # Another case of the run restarted the broker: take this one from before that.
    if "leader-epoch-checkpoint" in kept:
        kept["leader-epoch-checkpoint"] = case.files("active")["leader-epoch-checkpoint"]
    return kept


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_files_are_written_again_byte_for_byte(case: Case, tmp_path: Path) -> None:
    logs = open_logs(tmp_path)
    partition = logs.create("topic", 0, topic_config(case.topic_config), None)
    stage = full_stage(case)
    produce_again(case, stage, partition)
    logs.close()
    written = {path.name: path.read_bytes() for path in (tmp_path / "topic-0").iterdir()}
    expected = compared(case, stage)
    assert {name: written.get(name) for name in expected} == expected
    assert {name for name in written if name.endswith(".log")} == {name for name in expected if name.endswith(".log")}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CASES, indirect=True)
def test_while_running_the_indexes_hold_the_same_entries(case: Case, tmp_path: Path) -> None:
    """The stage copied from the running broker: its active segment has no closing entry yet."""
    if full_stage(case) != "clean" or case.name in KINDS_EXCLUDED or "epoch0" in case.stages:
        pytest.skip("the running stage of this case was cleaned, restarted, or differs on purpose")
    logs = open_logs(tmp_path)
    partition = logs.create("topic", 0, topic_config(case.topic_config), None)
    produce_again(case, "clean", partition)
    expected = {name: data for name, data in case.files("active").items() if name.endswith(INDEXES)}
    written = {name: (tmp_path / "topic-0" / name).read_bytes() for name in expected}
    assert {name: data[: len(expected[name])] for name, data in written.items()} == expected
    assert not any(any(data[len(expected[name]) :]) for name, data in written.items()), "behind the entries lie zeros"
    logs.close()


@pytest.mark.parametrize("case", ["v2-delete-records"], indirect=True)
def test_deleting_records_drops_the_same_segments(case: Case, tmp_path: Path) -> None:
    case.copy("before", tmp_path)
    logs = open_logs(tmp_path, case.topic_config | {"retention.ms": "-1"})
    partition = logs.partitions["topic", 0]
    log_start.delete_records_before(partition, 20)
    log_start.apply_retention(partition, WALL_MS)
    assert partition.log_start_offset == 20
    logs.close()
    left = {path.name for path in (tmp_path / "topic-0").iterdir() if path.name.endswith(".log")}
    assert left == {name for name in case.files("clean") if name.endswith(".log")}


def test_restarts_and_leader_epochs_leave_the_same_files(golden_root: Path, tmp_path: Path) -> None:
    """Three batches, a clean restart, three more, a kill, three more: closing entries stay where a start found them."""
    case = Case("v2-leader-epochs", golden_root)
    sent = list(appends(case, "clean"))
    logs = open_logs(tmp_path / "0")
    logs.create("topic", 0, topic_config(case.topic_config), None)
    for life in range(3):
        partition = logs.partitions["topic", 0]
        for one in sent[3 * life : 3 * life + 3]:
            partition.leader_epoch = one.leader_epoch
            partition.append(one.data, WALL_MS, produce_version=one.produce_version)
            partition.flush()
        if life != 1:
            logs.close()
        # After the kill: as the disk is, the folder unlocked.
        shutil.copytree(tmp_path / f"{life}", tmp_path / f"{life + 1}")
        if life == 1:
            # Whoever knows nothing of the segment reads all of it again, as those brokers did, and leaves out the closing entry.
            (tmp_path / f"{life + 1}" / "topic-0" / "horolog-seals").unlink()
            logs.close()
        logs = open_logs(tmp_path / f"{life + 1}", case.topic_config)
    logs.close()
    expected = {
        name: data
        for name, data in case.files("clean").items()
        if name.endswith((".log", *INDEXES, "leader-epoch-checkpoint"))
    }
    assert {name: (tmp_path / "3" / "topic-0" / name).read_bytes() for name in expected} == expected


@pytest.mark.parametrize("case", sorted(KINDS_EXCLUDED), indirect=True)
def test_every_excluded_kind_of_file_differs(case: Case, tmp_path: Path) -> None:
    """An exclusion that is not needed any more must go."""
    logs = open_logs(tmp_path)
    stage = full_stage(case)
    produce_again(case, stage, logs.create("topic", 0, topic_config(case.topic_config), None))
    logs.close()
    for kind in KINDS_EXCLUDED[case.name][0]:
        expected = {name: data for name, data in case.files(stage).items() if name.endswith(kind)}
        assert {
            name: data for name in expected if (data := read(tmp_path / "topic-0" / name)) is not None
        } != expected, kind


def read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def test_every_case_is_compared_or_excluded_with_a_reason() -> None:
    assert set(EXCLUDED) | set(KINDS_EXCLUDED) <= {name for name, _ in golden.names()}
    assert not set(EXCLUDED) & set(KINDS_EXCLUDED)
