"""A journal that workers could not begin on a full disk, and begin once there is room: what a start makes of it."""

import pytest

from horolog.broker.cluster import worker_checkpoints
from horolog.broker.cluster.new_topics import NewPartitions
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import StorageFault
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode
from tests.support.at_once import at_once
from tests.support.crew import Crew
from tests.support.crew_records import Alone, append, values


@pytest.fixture
def crew():
    return Crew((1, 2))


@pytest.fixture
def without(crew):
    """Workers that had no room for a journal; now there is."""
    alone = Alone(crew)
    alone.cluster.create_topic("a", 3, {"retention.ms": "77"})
    alone.close()
    crew.storage.capacity_bytes = crew.storage.used_bytes()
    crew.start()
    crew.storage.capacity_bytes = None
    for logs in crew.logs.values():
        logs.write_log_starts()
    assert worker_checkpoints.nodes_in(crew.storage, "/data") == [1, 2]
    return crew


def test_a_journal_that_was_never_begun_is_not_lost(without):
    without.kill()
    without.merge()
    state = Alone(without).cluster.state
    assert (state.topics["a"].overrides, state.rules_in_doubt) == ({"retention.ms": "77"}, False)


def test_one_that_was_begun_late_is_missed(without):
    without.clusters[1].changes.check_record()
    without.clusters[2].changes.check_record()
    without.clusters[2].create_topic("late", 1, {})
    without.kill()
    without.storage.remove("/data/horolog-journal")
    without.merge()
    assert Alone(without).cluster.state.rules_in_doubt


def test_workers_go_on_where_the_record_cannot_be_written_behind_a_journal_that_is_begun_late(without, caplog):
    without.storage.fail("create", "horolog-cluster", times=1)
    without.clusters[1].changes.check_record()
    assert "could not record that there is a journal" in caplog.text
    without.clusters[2].changes.check_record()
    without.clusters[2].create_topic("late", 1, {})
    without.kill()
    without.merge()
    assert set(Alone(without).cluster.topics) == {"a", "late"}


class TestBehindABrokerAlone:
    """A broker alone was killed and has left its journal, and the disk has no room to put it on record."""

    @pytest.fixture
    def killed(self, crew):
        alone = Alone(crew)
        alone.cluster.create_topic("a", 3, {"retention.ms": "77"})
        at_once(alone.cluster.add_partitions, [NewPartitions("a", 4)])
        at_once(alone.cluster.alter_topic_configs, {"a": {"retention.ms": "88"}})
        for index in range(4):
            append(alone.cluster.topics["a"].find(index), b"alone", b"more")
        log_start.delete_records_before(alone.cluster.topics["a"].find(0), 1)
        alone.logs.write_log_starts()
        alone.logs.abandon()
        crew.storage.die()
        crew.storage.capacity_bytes = crew.storage.used_bytes()
        return crew

    @staticmethod
    def begin_the_journal(crew):
        crew.storage.capacity_bytes = None
        for node in (2, 1, 2):
            crew.clusters[node].changes.check_record()

    @pytest.mark.parametrize("nodes", [(1, 2), (1, 2, 3)])
    def test_workers_serve_what_it_has_acknowledged(self, killed, nodes, caplog):
        killed.nodes = nodes
        killed.start()
        assert "no free space to merge" in caplog.text
        assert [values(killed.partition("a", index)) for index in range(4)] == [[b"more"]] + [[b"alone", b"more"]] * 3
        assert {one.topics["a"].overrides["retention.ms"] for one in killed.clusters.values()} == {"88"}
        assert killed.storage.exists("/data/horolog-journal")

    def test_nothing_is_changed_until_there_is_room_for_a_journal_of_workers(self, killed):
        killed.start()
        killed.storage.capacity_bytes = None
        for node in (2, 1):
            with pytest.raises(ClusterError) as refused:
                killed.clusters[node].create_topic("early", 1, {})
            assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
            killed.clusters[node].changes.catch_up()
        killed.clusters[2].changes.check_record()
        with pytest.raises(ClusterError):
            killed.clusters[2].create_topic("early", 1, {})
        self.begin_the_journal(killed)
        killed.clusters[2].create_topic("late", 1, {})
        assert set(killed.clusters[1].topics) == {"a", "late"}

    @pytest.mark.parametrize("record_fails", [False, True])
    def test_what_workers_change_then_is_there_after_they_were_killed(self, killed, record_fails):
        killed.start()
        if record_fails:
            killed.storage.fail("create", "horolog-cluster", times=1)
        self.begin_the_journal(killed)
        killed.clusters[2].create_topic("late", 1, {})
        killed.kill(2)
        assert set(killed.begin(2).topics) == {"a", "late"}
        killed.kill()
        killed.storage.crash()
        state = Alone(killed).cluster.state
        assert set(state.topics) == {"a", "late"}
        assert (state.topics["a"].partition_count, state.topics["a"].overrides["retention.ms"]) == (4, "88")
        assert (state.rules_in_doubt, state.lost_rules) == (False, 0)

    @pytest.mark.parametrize("ends", ["kill", "stop"])
    def test_workers_that_end_before_there_is_room_leave_it_as_it_was(self, killed, ends):
        killed.start()
        killed.kill(2)
        killed.storage.capacity_bytes = None
        cut = killed.begin(2).topics["a"].led_here[0]
        log_start.delete_records_before(cut, 2)
        for logs in killed.logs.values():
            logs.write_log_starts()
        getattr(killed, ends)()
        assert not killed.merge(), "partitions that took nothing were not closed well"
        alone = Alone(killed)
        assert alone.cluster.state.topics["a"].overrides["retention.ms"] == "88"
        starts = {one.index: one.log_start_offset for one in alone.cluster.topics["a"].led_here}
        assert starts == {0: 1, 1: 0, 2: 0, 3: 0} | {cut.index: 2}
        assert not alone.cluster.state.rules_in_doubt

    @pytest.mark.parametrize("lacks", ["an entry", "a bit"])
    def test_workers_do_not_go_on_where_something_of_it_is_lost(self, killed, lacks):
        path = "/data/horolog-journal"
        data = killed.storage.read_all(path)
        if lacks == "a bit":
            killed.storage.corrupt(path, len(data) - 10, 1)
        else:
            node = killed.storage.file_node(path)
            node.apply(data.rindex(b"\n", 0, -1) + 1, None)
        with pytest.raises(StorageFault, match="No space left"):
            killed.start()
