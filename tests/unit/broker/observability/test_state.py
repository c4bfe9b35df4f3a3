"""Figures that are asked for when somebody looks: what they count, and where they end."""

import pytest

from horolog.broker.config.topic_settings import SETTINGS_UNKNOWN
from horolog.broker.observability import state
from horolog.broker.observability.state import StateMetrics
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.log_model import NEW, encode
from tests.support.memory_broker import MemoryBroker


@pytest.fixture
async def machine():
    async with MemoryBroker(horolog_metrics_series_max=3) as machine:
        yield machine


def figures(machine):
    """By family, the samples by their labels."""
    return {family.name: dict(samples) for family, samples in StateMetrics(machine.broker).collect()}


def append(machine, topic, *, ahead_ms=0):
    partition = machine.broker.cluster.topics[topic].find(0)
    now_ms = machine.broker.clock.wall_ms()
    partition.append(encode(2, 0, [now_ms + ahead_ms], [b"v"]), now_ms, produce_version=NEW)
    partition.flush()


async def commit(machine, offset, group="g"):
    asked = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[asked])]
    wire = machine.connect()
    await wire.ask(OffsetCommitRequest(group_id=group, topics=topics), 9)


async def test_every_family_is_declared_and_told(machine):
    assert {each.name for each in state.FAMILIES} == figures(machine).keys()


async def test_a_new_broker_has_nothing_to_tell_but_its_phase(machine):
    found = figures(machine)
    assert {labels for labels, value in found["phase_info"].items() if value} == {(machine.broker.phase.value,)}
    assert found["topics"] == found["topics_with_unknown_settings"] == {(): 0}
    assert found["partitions"] == {("offline",): 0, ("online",): 0, ("stopped",): 0}
    assert set(found["peer_memory_bytes"]) == {("requests",), ("unfinished",), ("answers",)}


async def test_partitions_are_told_by_what_can_be_done_with_them(machine):
    first, second, _ = (machine.topic(name).find(0) for name in ("t", "u", "v"))
    first.condition.go_offline("no disk")
    second.condition.stop("a failed sync")
    found = figures(machine)
    assert found["partitions"] == {("offline",): 1, ("online",): 1, ("stopped",): 1}
    assert found["partition_offline_info"] == {("t", "0", "no disk"): 1}
    assert found["partition_stopped_info"] == {("u", "0", "a failed sync"): 1}


async def test_logs_are_told_by_their_offsets_sizes_and_times(machine):
    machine.topic("t")
    machine.topic("u")
    append(machine, "t", ahead_ms=5_000)
    found = figures(machine)
    assert (found["partition_start_offset"]["t", "0"], found["partition_end_offset"]["t", "0"]) == (0, 1)
    assert found["partition_size_bytes"]["t", "0"] > 0
    assert found["partition_segments"]["t", "0"] == 1
    assert found["partition_newest_record_age_seconds"] == {("t", "0"): -5}
    assert found["partitions_with_future_records"] == {(): 1}
    assert found["topic_records_total"]["t",] == 1
    assert found["topic_appended_bytes_total"]["t",] > found["topic_appended_bytes_total"]["u",] == 0


async def test_topics_without_their_settings_are_counted(machine):
    machine.topic("t", **{SETTINGS_UNKNOWN: "true"})
    machine.topic("u")
    assert figures(machine)["topics_with_unknown_settings"] == {(): 1}


async def test_series_end_where_they_should_and_what_was_left_out_is_told(machine):
    for number in range(5):
        machine.topic(f"t{number}")
    found = figures(machine)
    assert len(found["partition_end_offset"]) == len(found["topic_records_total"]) == 3
    assert found["left_out_series"] == {("partition",): 2, ("topic",): 2, ("group",): 0, ("group_partition",): 0}


async def test_groups_are_told_by_their_kind_and_how_far_behind_they_are(machine):
    machine.topic("t")
    for _ in range(3):
        append(machine, "t")
    await commit(machine, 1)
    found = figures(machine)
    assert found["groups"] == {("classic", "Empty"): 1}
    assert found["group_members"] == {("g",): 0}
    assert found["group_lag_records"] == {("g", "t", "0"): 2}
    assert list(found["group_lag_seconds"]) == [("g", "t", "0")]


async def test_commits_of_partitions_that_are_gone_are_left_out(machine):
    machine.topic("t")
    await commit(machine, 1)
    del machine.broker.logs.partitions["t", 0]
    found = figures(machine)
    assert (found["group_lag_records"], found["left_out_series"]["group_partition",]) == ({}, 1)
