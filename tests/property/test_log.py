"""The log against a plain list: appends of every format, rolls, reads, restarts, failing writes and power cuts in any order."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from horolog.broker.log.partition import OffsetOutOfRange, log_start, note_progress
from horolog.broker.log.segments import segment as segment_module
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.storage.memory_disk import PowerCut
from tests.support.log_model import CODECS, Model, read_all, small_config

SMALL_PROGRESS_BYTES = 300

timestamps = st.integers(-1, 40)
batches = st.lists(st.tuples(timestamps, st.binary(max_size=60)), min_size=1, max_size=6)
kinds = st.sampled_from([(magic, codec) for magic, codecs in CODECS.items() for codec in codecs])


class Log(RuleBasedStateMachine):
    """Every step leaves a log that holds what the list holds."""

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(segment_module, "PROGRESS_BYTES", SMALL_PROGRESS_BYTES)

    def teardown(self):
        self.patch.undo()

    @initialize(interval=st.sampled_from([0, 100, 400]), segment_bytes=st.sampled_from([700, 1200, 5000]))
    def start(self, interval, segment_bytes):
        self.model = Model(small_config(index_interval_bytes=interval, segment_bytes=segment_bytes))

    @rule(kind=kinds, batch=batches)
    def append(self, kind, batch):
        self.model.append(*kind, [one[0] for one in batch], [one[1] for one in batch])
        self.model.written = max(self.model.written, self.model.partition.high_watermark)  # a roll writes

    @rule()
    def flush(self):
        self.model.flush()

    @rule()
    def sync(self):
        self.model.flush()
        self.model.sync()

    @rule()
    def note_progress(self):
        """The active segment is sealed as it is, with the next sync."""
        note_progress(self.model.partition)

    @rule()
    def write_fails(self):
        if not self.model.partition.segments[-1].pending:
            return
        self.model.storage.fail("write", torn_bytes=20)
        with pytest.raises(StorageFault):
            self.model.flush()
        self.model.forget_unwritten()
        assert self.model.partition.condition.fault is None

    @rule()
    def restart(self):
        self.model.close_and_open()

    @rule()
    def kill(self):
        self.model.kill_and_open()

    @rule(seed=st.integers(0, 1 << 16))
    def cut_power(self, seed):
        self.model.cut_power_and_open(random.Random(seed))

    @rule(part=st.floats(0, 1))
    def delete_records(self, part):
        partition = self.model.partition
        start = partition.log_start_offset
        log_start.delete_records_before(partition, start + int(part * (partition.high_watermark - start)))
        log_start.apply_retention(partition, 0)
        self.model.written = partition.high_watermark
        # The log's start is durable before the request is answered: here, at once.
        self.model.rows = [row for row in self.model.rows if row[0] >= partition.log_start_offset]

    @rule(max_bytes=st.integers(1, 2000), part=st.floats(0, 1))
    def read_somewhere(self, max_bytes, part):
        partition = self.model.partition
        offset = partition.log_start_offset + int(part * (partition.high_watermark - partition.log_start_offset))
        assert read_all(partition, max_bytes, offset) == [row for row in self.model.visible() if row[0] >= offset]

    @rule()
    def read_outside(self):
        partition = self.model.partition
        assert partition.read(partition.log_end_offset, 100) == b""
        for offset in (-1, partition.log_start_offset - 1, partition.log_end_offset + 1):
            with pytest.raises(OffsetOutOfRange):
                partition.read(offset, 100)

    @invariant()
    def the_log_holds_what_the_list_holds(self):
        if hasattr(self, "model"):
            self.model.check()


TestLog = Log.TestCase
TestLog.settings = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@settings(max_examples=60, deadline=None, report_multiple_bugs=False)
@given(st.data())
def test_the_power_may_fail_at_any_change(data):
    """Whatever step the power fails at, also inside a roll, a close or a start: what was synced is there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_module, "PROGRESS_BYTES", SMALL_PROGRESS_BYTES)
        check_a_power_cut(data, Model(small_config(segment_bytes=data.draw(st.sampled_from([700, 1200, 5000])))))


def check_a_power_cut(data, model):
    model.storage.power_off_after(data.draw(st.integers(1, 80), label="changes"))
    try:
        for _ in range(12):
            kind = data.draw(kinds)
            batch = data.draw(batches)
            model.append(*kind, [one[0] for one in batch], [one[1] for one in batch])
            action = data.draw(st.sampled_from(["go on", "flush", "sync", "progress", "restart"]))
            if action != "go on":
                model.flush()
            if action == "progress":
                note_progress(model.partition)
            if action == "sync":
                model.sync()
            if action == "restart":
                model.close_and_open()
    except PowerCut:
        pass
    model.synced = max(model.synced, model.partition.sync_state.recovery_point)
    rows, model.written = list(model.rows), 1 << 40
    model.cut_power_and_open(random.Random(data.draw(st.integers(0, 1 << 16))))
    assert len(model.rows) <= len(rows) + 6
    model.check()
    model.append(2, 0, [7], [b"goes on"])
    model.flush()
    model.check()
