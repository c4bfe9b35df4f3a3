"""A cluster that several workers serve: each opens what it leads, and what one changes all have."""

import pytest

from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster import file_journal, found_journals
from horolog.broker.cluster.cluster_state import Lead, LeadsChanged, ProducerIdsReserved, RulesChanged
from horolog.broker.cluster.entry_lines import encode_entry
from horolog.broker.cluster.link import LOOK_AT_THE_RECORD
from horolog.broker.cluster.new_topics import NewPartitions, NewTopic
from horolog.broker.cluster.worker_folder_checkpoints import share_of
from horolog.broker.cluster.worker_membership import WorkerMembership
from horolog.broker.log.files import checkpoints
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import closing
from horolog.broker.log.storage import DataFolderError
from horolog.broker.log.storage.memory_disk import ALL
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import ClusterFile
from horolog.broker.on_record.stored_rules import StoredRule
from horolog.protocol.errors import ErrorCode
from tests.support.at_once import at_once, delete_topic
from tests.support.crew import Crew, Tie, context_of
from tests.support.crew_records import Alone
from tests.support.log_model import NEW, NOW_MS, encode, read_all

RULES = tuple(StoredRule(kind, "a", {"of": kind}) for kind in ("user", "acl", "quota"))


@pytest.fixture
def crew():
    return Crew((1, 2)).start()


def append(partition, value=b"v"):
    partition.append(encode(2, 0, [NOW_MS], [value]), NOW_MS, produce_version=NEW)
    partition.flush()
    partition.sync()


def led(crew, name):
    """By worker, the partitions that it leads."""
    return {node: [one.index for one in cluster.topics[name].led_here] for node, cluster in crew.clusters.items()}


def led_by_all(crew, name):
    return [index for indexes in led(crew, name).values() for index in indexes]


def create(crew, name, count=4, node=1, **overrides):
    return at_once(crew.clusters[node].create_topics, [NewTopic(name, count, overrides=overrides)])


def begin_to_delete(crew, name, node=1):
    """The list of outcomes, which is empty until the others have removed their folders."""
    told = []
    cluster = crew.clusters[node]
    cluster.delete_topics({name: cluster.topics[name].id}, told.append)
    return told


def test_what_one_creates_all_have_and_each_leads_a_part(crew):
    create(crew, "t", 4, node=2)
    assert sorted(led_by_all(crew, "t")) == [0, 1, 2, 3]
    assert {len(indexes) for indexes in led(crew, "t").values()} == {2}
    for cluster in crew.clusters.values():
        topic = cluster.topics["t"]
        assert topic.partition_count == 4
        assert cluster.by_id[topic.id] is topic
        elsewhere = next(index for index in range(4) if index not in led(crew, "t")[cluster.settings.node_id])
        assert topic.find(elsewhere) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_every_worker_comes_to_the_same_state(crew):
    create(crew, "t", 2)
    at_once(crew.clusters[2].alter_topic_configs, {"t": {"retention.ms": "5"}})
    at_once(crew.clusters[1].alter_broker_configs, "2", {"log.retention.ms": "7"})
    at_once(crew.clusters[2].add_partitions, [NewPartitions("t", 5)])
    one, other = crew.clusters[1].state, crew.clusters[2].state
    assert (one.topics, one.broker_configs, one.number) == (other.topics, other.broker_configs, other.number)
    assert all(partition.config.retention_ms == 5 for partition in crew.clusters[1].topics["t"].led_here)
    assert sorted(led_by_all(crew, "t")) == [0, 1, 2, 3, 4]
    assert crew.clusters[2].settings.log_retention_ms == 7
    assert crew.clusters[1].settings.log_retention_ms != 7
    assert crew.clusters[1].settings_of("2").log_retention_ms == 7
    assert crew.clusters[1].settings_of("1") is crew.clusters[1].settings


def test_a_change_of_settings_goes_on_from_what_another_worker_has_changed_meanwhile(crew):
    """Both decide on the settings that they know; neither may take away what the other was told is done."""
    create(crew, "t", 2)

    def with_setting(key, value):
        return lambda present: {**present, key: value}

    crew.at_once = False
    crew.clusters[1].alter_topic_configs({"t": with_setting("retention.ms", "5")}, lambda _: None)
    crew.clusters[2].alter_topic_configs({"t": with_setting("segment.ms", "7")}, lambda _: None)
    crew.clusters[2].alter_broker_configs("", with_setting("log.retention.ms", "7"), lambda _: None)
    crew.clusters[1].alter_broker_configs("", with_setting("log.segment.bytes", "9000"), lambda _: None)
    crew.at_once = True
    crew.deliver()
    for node in (1, 2):
        crew.clusters[node].changes.catch_up()
        assert crew.clusters[node].topics["t"].overrides == {"retention.ms": "5", "segment.ms": "7"}
        assert crew.clusters[node].broker_configs[""] == {"log.retention.ms": "7", "log.segment.bytes": "9000"}


def test_settings_of_any_worker_are_checked(crew):
    with pytest.raises(ClusterError):
        crew.clusters[1].check_broker_configs("2", {"log.retention.ms": "soon"})


def test_a_change_is_told_when_the_others_have_it(crew):
    crew.at_once = False
    told = []
    crew.clusters[1].create_topics([NewTopic("t", 2)], told.extend)
    assert "t" in crew.clusters[1].topics
    assert (told, "t" in crew.clusters[2].topics) == ([], False)
    crew.deliver()
    assert [one.name for one in told] == ["t"]
    assert "t" in crew.clusters[2].topics


def test_a_topic_that_was_made_meanwhile_is_there(crew):
    crew.at_once = False
    told = []
    crew.clusters[1].create_topics([NewTopic("t", 2)], lambda _: None)
    crew.clusters[2].create_topics([NewTopic("t", 3)], told.extend)
    assert [one.code for one in told] == [ErrorCode.TOPIC_ALREADY_EXISTS]
    assert crew.clusters[2].topics["t"].partition_count == 2


def test_who_makes_and_removes_many_folders_says_so_at_each(crew):
    crew.clusters[1].create_topics([NewTopic("t", 10)], lambda _: None)
    assert [tie.parts_done for tie in crew.ties.values()] == [5, 5]
    begin_to_delete(crew, "t")
    assert [tie.parts_done for tie in crew.ties.values()] == [10, 10]


def test_producer_ids_are_given_out_once_and_without_waiting(crew):
    crew.at_once = False
    first = [crew.clusters[node].producer_ids.take() for node in (1, 2, 1, 2)]
    assert len(set(first)) == 4
    assert abs(first[0] - first[1]) == 1000


def test_who_was_not_told_reads_on_by_itself(crew):
    crew.at_once = False
    crew.clusters[1].create_topics([NewTopic("t", 2)], lambda _: None)
    crew.clusters[2].changes.catch_up()
    assert "t" in crew.clusters[2].topics
    assert crew.ties[2].applied_up_to == crew.clusters[2].state.number


def test_others_are_told_of_what_was_applied_on_the_way_to_a_change_of_its_own(crew):
    """Else whoever made the change before waits for nothing until its time is up."""
    crew.at_once = False
    for node, name in ((1, "t"), (2, "u")):
        crew.clusters[node].create_topics([NewTopic(name, 2)], lambda _: None)
    crew.deliver()
    assert crew.clusters[2].state.topics.keys() == {"t", "u"}
    assert crew.ties[2].applied_up_to == crew.clusters[2].state.number


class TestDeletion:
    def test_every_worker_removes_its_folders_and_then_nothing_is_left_to_be_removed(self, crew):
        create(crew, "t")
        delete_topic(crew.clusters[1], "t")
        assert all("t" not in cluster.topics for cluster in crew.clusters.values())
        assert not [name for name in crew.storage.list_dir("/data") if name.startswith("t-") and "." not in name]
        assert [cluster.state.deleting for cluster in crew.clusters.values()] == [{}, {}]

    def test_while_one_has_folders_left_no_topic_of_that_name_is_made(self, crew):
        create(crew, "t")
        crew.at_once = False
        begin_to_delete(crew, "t")
        told = []
        crew.clusters[1].create_topics([NewTopic("t", 4)], told.extend)
        assert [one.code for one in told] == [ErrorCode.REQUEST_TIMED_OUT]
        crew.at_once = True
        crew.deliver()
        create(crew, "t")
        assert sorted(led_by_all(crew, "t")) == [0, 1, 2, 3]

    def test_a_topic_that_two_delete_is_deleted_for_one_of_them(self, crew):
        create(crew, "t")
        crew.at_once = False
        told = {node: begin_to_delete(crew, "t", node) for node in (1, 2)}
        crew.at_once = True
        crew.deliver()
        assert told[1] == [{}]
        ((name, refusal),) = told[2][0].items()
        assert (name, refusal.code) == ("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def test_a_topic_that_was_created_since_the_caller_looked_stays(self, crew):
        create(crew, "t")
        looked_at = crew.clusters[2].topics["t"].id
        delete_topic(crew.clusters[1], "t")
        create(crew, "t")
        before = crew.clusters[2].changes.written_count
        refusal = at_once(crew.clusters[2].delete_topics, {"t": looked_at})["t"]
        assert refusal.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert sorted(led_by_all(crew, "t")) == [0, 1, 2, 3]
        assert crew.clusters[2].changes.written_count == before

    def test_a_worker_that_was_away_removes_its_folders_when_it_comes_back(self, crew):
        create(crew, "t")
        topic_id = crew.clusters[1].topics["t"].id
        crew.kill(2)
        delete_topic(crew.clusters[1], "t")
        assert crew.clusters[1].state.deleting == {"t": {topic_id}}
        with pytest.raises(ClusterError, match="still being deleted"):
            crew.clusters[1].create_topic("t")
        crew.begin(2)
        create(crew, "t")
        assert sorted(led_by_all(crew, "t")) == [0, 1, 2, 3]

    def test_a_folder_that_cannot_be_removed_is_told(self, crew, caplog):
        create(crew, "t")
        crew.kill(2)
        delete_topic(crew.clusters[1], "t")
        crew.storage.fail("rename", "t-", times=2)
        crew.begin(2)
        assert "is deleted, but its files cannot be removed" in caplog.text

    def test_a_folder_of_which_it_is_not_known_whose_it_is_stays(self, crew):
        """It has the name of a deleted topic, and may be that of another."""
        create(crew, "t")
        crew.kill(2)
        folders = [one.directory for one in crew.clusters[1].topics["t"].led_here]
        others = {f"/data/t-{index}" for index in range(4)} - set(folders)
        delete_topic(crew.clusters[1], "t")
        damaged = min(others)
        crew.storage.write_atomically(f"{damaged}/{checkpoints.PARTITION_METADATA}", b"nonsense")
        crew.begin(2)
        assert {one for one in others if crew.storage.is_dir(one)} == {damaged}


class TestRecords:
    """The journal is looked at now and then, and when a worker says that it cannot read it."""

    def test_one_that_was_hurt_is_written_anew_when_a_worker_says_so(self, crew):
        create(crew, "t")
        path = found_journals.find(crew.storage, crew.folders).path
        crew.storage.corrupt(path, crew.storage.read_all(path).index(b"TopicsCreated"), 1)
        assert found_journals.find(crew.storage, crew.folders).damages
        crew.ties[1].on_journal(LOOK_AT_THE_RECORD)
        assert found_journals.find(crew.storage, crew.folders).damages == []
        create(crew, "u", node=2)
        assert sorted(led_by_all(crew, "u")) == [0, 1, 2, 3]

    def test_where_there_was_no_room_for_one_the_first_worker_begins_it(self):
        crew = Crew((1, 2))
        alone = Alone(crew)
        alone.cluster.create_topic("t", 2, {})
        alone.close()
        crew.storage.capacity_bytes = crew.storage.used_bytes()
        crew.start()
        one, other = crew.clusters.values()
        assert sorted(led_by_all(crew, "t")) == [0, 1]
        for cluster in (one, other):
            cluster.changes.check_record()
            with pytest.raises(ClusterError):
                cluster.create_topic("late", 1, {})
        crew.storage.capacity_bytes = None
        other.changes.check_record()
        assert not crew.storage.exists("/data/horolog-journal")
        for cluster in (one, other):
            cluster.changes.check_record()
        other.create_topic("late", 1, {})
        assert led_by_all(crew, "late") == [0]


class TestFaults:
    def made_in_part(self, crew):
        """A topic that worker 1 has decided on and cannot make, and that worker 2 has. Gives what worker 1 tells, once all know."""
        crew.at_once = False
        told = []
        crew.storage.fail("make", "t-", times=ALL)
        crew.clusters[1].create_topics([NewTopic("t", 2)], told.extend)
        crew.storage.heal()
        crew.clusters[2].changes.catch_up()
        return told

    def test_a_partition_that_cannot_be_made_where_it_is_asked_for_is_offline_until_it_can(self, crew):
        told = self.made_in_part(crew)
        crew.deliver()
        (mine,), (other,) = (crew.clusters[node].topics["t"].led_here for node in crew.nodes)
        assert [one.name for one in told] == ["t"]
        assert (mine.condition.fault, other.condition.fault) == (f"make {mine.directory}: Input/output error", None)
        crew.clock.advance(1000)
        reopened, _ = crew.logs[1].retry_stopped()
        assert reopened == [mine]
        assert checkpoints.load_topic_id(crew.storage, mine.directory) == crew.clusters[1].topics["t"].id

    def test_what_another_worker_has_acknowledged_of_a_new_topic_is_kept(self, crew):
        self.made_in_part(crew)
        (other,) = crew.clusters[2].topics["t"].led_here
        append(other, b"acknowledged")
        crew.at_once = True
        crew.deliver()
        assert [value for _, _, value in read_all(crew.partition("t", other.index))] == [b"acknowledged"]

    @pytest.mark.parametrize("leader", [1, 2])
    def test_a_topic_that_could_not_be_made_may_be_changed_before_all_know_it(self, crew, leader):
        self.made_in_part(crew)
        cluster, (index,) = crew.clusters[2], led(crew, "t")[leader]
        moved = LeadsChanged((((cluster.topics["t"].id, index), Lead(3 - leader, 1)),))
        cluster.changes.make(lambda _: moved, lambda _: None)
        cluster.alter_topic_configs({"t": {"retention.ms": "5"}}, lambda _: None)
        cluster.add_partitions([NewPartitions("t", 4)], lambda _: None)
        crew.clusters[1].changes.catch_up()
        crew.at_once = True
        crew.deliver()
        assert sorted(led_by_all(crew, "t")) == [0, 1, 2, 3]
        assert index in led(crew, "t")[3 - leader]
        assert crew.clusters[1].topics["t"].overrides == {"retention.ms": "5"}

    def test_a_partition_that_cannot_be_made_elsewhere_is_offline_there(self, crew):
        told = []
        crew.at_once = False
        crew.clusters[1].create_topics([NewTopic("t", 2)], told.extend)
        crew.storage.fail("make", "t-", times=1)
        crew.deliver()
        (other,) = crew.clusters[2].topics["t"].led_here
        assert other.condition.fault is not None
        assert [one.name for one in told] == ["t"]

    def test_a_topic_grows_although_a_folder_cannot_be_made(self, crew):
        create(crew, "t", 1)
        crew.storage.fail("make", "t-", times=4)
        assert at_once(crew.clusters[1].add_partitions, [NewPartitions("t", 5)]) == {}
        assert (
            sum(one.condition.fault is not None for c in crew.clusters.values() for one in c.topics["t"].led_here) == 4
        )

    def test_what_could_not_be_written_has_not_happened(self, crew):
        crew.storage.fail("sync", "horolog-journal")
        with pytest.raises(ClusterError):
            crew.clusters[1].create_topic("t")
        assert "t" not in crew.clusters[1].topics
        create(crew, "t", 2)
        assert crew.clusters[1].state.number == crew.clusters[2].state.number

    def test_nobody_serves_a_folder_that_was_not_settled(self):
        crew = Crew((1,)).start()
        crew.stop()
        crew.merge()
        logs = LogManager(["/data"], crew.storage, crew.clock, crew.settings_of(1), share_of(1, 1, is_first=True))
        file = ClusterFile(crew.storage, "/data")
        with pytest.raises(DataFolderError, match="settled"):
            WorkerMembership(context_of(1, (1,)), Tie(crew, 1), logs, file, AtOnce())


class TestShorterJournals:
    @pytest.fixture(autouse=True)
    def bound(self, monkeypatch):
        monkeypatch.setattr(file_journal, "GROWTH_BYTES", 1000)

    def change(self, crew, times=20):
        for number in range(times):
            create(crew, "again", 2, node=1 + number % 2)
            at_once(crew.clusters[1].alter_topic_configs, {"kept": {"retention.ms": str(number)}})
            delete_topic(crew.clusters[2 - number % 2], "again")
        create(crew, "again", 3)

    def head(self, crew):
        return found_journals.find(crew.storage, crew.folders).head

    def test_changes_take_no_more_room_than_their_outcome(self, crew):
        create(crew, "kept", 4)
        self.change(crew)
        path = found_journals.find(crew.storage, crew.folders).path
        assert len(crew.storage.read_all(path)) < 5000
        assert crew.clusters[1].state == crew.clusters[2].state
        assert sorted(led_by_all(crew, "again")) == [0, 1, 2]
        crew.kill(2)
        crew.begin(2)
        assert crew.clusters[1].state == crew.clusters[2].state
        assert sorted(led_by_all(crew, "again")) == [0, 1, 2]

    def test_what_is_on_record_at_the_end_is_the_same(self, crew):
        create(crew, "kept", 4)
        self.change(crew)
        state = crew.clusters[1].state
        crew.stop()
        crew.merge()
        stored = ClusterFile(crew.storage, "/data").load()
        assert dict(stored.topics) == dict(state.topics)
        assert stored.next_producer_id == state.next_producer_id
        assert stored.epochs == {}

    def test_rules_are_there_for_a_successor_and_after_a_restart(self, crew):
        """Both read nothing but the shorter journal: the lines that the rules came with are gone."""
        create(crew, "kept", 4)
        at_once(crew.clusters[1].change_rules, lambda _: RulesChanged(RULES))
        at_once(crew.clusters[2].change_rules, lambda _: RulesChanged(removed=frozenset([RULES[0].id])))
        self.change(crew)
        assert b"RulesChanged" not in crew.storage.read_all(found_journals.find(crew.storage, crew.folders).path)
        kept = {rule.id: rule for rule in RULES[1:]}
        crew.kill(2)
        told = []
        crew.begin(2, told.append)
        assert (crew.clusters[1].state.rules, crew.clusters[2].state.rules, told) == (kept, kept, [kept])
        crew.kill()
        crew.storage.crash()
        crew.start()
        assert crew.clusters[1].state.rules == crew.clusters[2].state.rules == kept
        crew.stop()
        crew.merge()
        assert ClusterFile(crew.storage, "/data").load().rules == kept

    def test_while_a_worker_is_away_nothing_is_left_out(self, crew):
        """Its successor may have begun to read."""
        create(crew, "kept", 4)
        crew.stop(2)
        for number in range(40):
            at_once(crew.clusters[1].alter_topic_configs, {"kept": {"retention.ms": str(number)}})
        assert self.head(crew).whole is None
        crew.begin(2)
        for number in range(10):
            at_once(crew.clusters[1].alter_topic_configs, {"kept": {"retention.ms": str(number)}})
        assert self.head(crew).whole is not None
        assert crew.clusters[1].state == crew.clusters[2].state


class TestLostRules:
    """A line of the journal cannot be read: it may have taken somebody's right away. Nobody is left who knows it."""

    @pytest.fixture
    def crew(self):
        crew = Crew((1, 2)).start()
        at_once(crew.clusters[1].change_rules, lambda _: RulesChanged(RULES[:2]))
        path = found_journals.find(crew.storage, crew.folders).path
        start = len(crew.storage.read_all(path))
        at_once(crew.clusters[1].change_rules, lambda _: RulesChanged(RULES[2:]))
        create(crew, "t", 2)
        crew.kill()
        crew.storage.open(path).pwritev([b"00000000"], start)
        return crew

    def test_no_worker_serves_without_them(self, crew):
        with pytest.raises(DataFolderError, match="the leaders of partitions are unknown"):
            crew.begin(2)
        for _ in range(2):
            with pytest.raises(DataFolderError, match=r"horolog\.lost\.rules\.accept=true"):
                crew.start()

    def test_the_others_count_where_that_is_accepted(self, crew, caplog):
        crew.set(horolog_lost_rules_accept=True)
        known = [rule.id for rule in RULES[:2]]
        crew.start()
        assert "continuing with the others" in caplog.text
        assert [list(one.state.rules) for one in crew.clusters.values()] == [known] * 2
        crew.stop()
        crew.set(horolog_lost_rules_accept=False)
        assert crew.start().clusters[1].state.lost_rules == 0


class TestStarts:
    def test_what_a_successor_goes_on_from_survives_a_power_cut(self, crew):
        """Whoever wrote an entry may have been killed before it was synced."""
        crew.kill(2)
        found = found_journals.find(crew.storage, crew.folders)
        line = encode_entry(len(found.read.entries) + 1, ProducerIdsReserved(5000))
        crew.storage.open_apart(found.path).pwritev([line], found.read.end)
        number = crew.begin(2).state.number
        crew.storage.crash()
        assert len(found_journals.find(crew.storage, crew.folders).read.entries) == number

    def test_a_successor_has_everything_that_was_changed(self, crew):
        create(crew, "t", 4, **{"retention.ms": "5"})
        at_once(crew.clusters[1].alter_broker_configs, "", {"log.retention.ms": "7"})
        before = led(crew, "t")
        crew.kill(2)
        create(crew, "u", 2)
        crew.begin(2)
        assert led(crew, "t") == before
        assert crew.clusters[2].topics["t"].overrides == {"retention.ms": "5"}
        assert crew.clusters[2].settings.log_retention_ms == 7
        assert crew.clusters[2].topics["u"].partition_count == 2
        assert crew.ties[2].applied_up_to == crew.clusters[2].state.number

    def test_a_partition_of_another_number_of_folders_is_left_alone(self, crew):
        create(crew, "t", 1)
        crew.storage.make_dir("/data/t-9000")
        crew.kill(2)
        crew.begin(2)
        refused = at_once(crew.clusters[2].add_partitions, [NewPartitions("t", 2)])
        assert "folders that are named like partitions" in refused["t"].message

    def test_a_partition_without_a_folder_starts_empty(self, crew):
        create(crew, "t", 2)
        (index,) = led(crew, "t")[2]
        crew.kill(2)
        for name in crew.storage.list_dir(f"/data/t-{index}"):
            crew.storage.remove(f"/data/t-{index}/{name}")
        crew.storage.remove_dir(f"/data/t-{index}")
        crew.begin(2)
        assert crew.partition("t", index).log_end_offset == 0
        assert checkpoints.load_topic_id(crew.storage, f"/data/t-{index}") == crew.clusters[2].topics["t"].id

    def test_one_that_can_be_read_again_tells_its_epoch(self, crew):
        create(crew, "t", 2)
        (index,) = led(crew, "t")[2]
        partition = crew.partition("t", index)
        partition.leader_epoch = 3
        crew.clusters[2].reopened(partition)
        assert crew.clusters[1].state.epoch(crew.clusters[1].topics["t"].id, index) == 3


class TestLeads:
    def move(self, crew, index, node, by=1):
        topic_id = crew.clusters[1].topics["t"].id
        epoch = crew.clusters[by].state.epoch(topic_id, index) + 1
        change = LeadsChanged((((topic_id, index), Lead(node, epoch)),))
        assert at_once(crew.clusters[by].changes.make, lambda _: change) == {}

    def test_a_partition_is_opened_where_it_is_led_from_now_on(self, crew):
        create(crew, "t", 2)
        (index,) = led(crew, "t")[2]
        append(crew.partition("t", index), b"before")
        told = []
        for node, cluster in crew.clusters.items():
            cluster.on_led = lambda *place, node=node: told.append((node, "led", *place))
            cluster.on_led_elsewhere = lambda *place, node=node: told.append((node, "lost", *place))
        self.move(crew, index, 1)
        partition = crew.partition("t", index)
        assert led(crew, "t") == {1: [0, 1], 2: []}
        assert [value for _, _, value in read_all(partition)] == [b"before"]
        assert partition.leader_epoch == 1
        assert sorted(told) == [(1, "led", "t", index), (2, "lost", "t", index)]
        append(partition, b"after")
        self.move(crew, index, 2)
        assert [value for _, _, value in read_all(crew.partition("t", index))] == [b"before", b"after"]
        assert crew.partition("t", index).leader_epoch == 2

    def test_nothing_is_told_of_one_that_was_handed_over(self, crew, caplog):
        create(crew, "t", 2)
        (index,) = led(crew, "t")[2]
        append(crew.partition("t", index), b"before")
        closing.close(crew.clusters[2].withdraw("t", index))
        self.move(crew, index, 1)
        assert "was not closed" not in caplog.text
        assert [value for _, _, value in read_all(crew.partition("t", index))] == [b"before"]

    def test_one_that_was_not_closed_before_is_told(self, crew, caplog):
        create(crew, "t", 2)
        (index,) = led(crew, "t")[2]
        was = crew.partition("t", index)
        self.move(crew, index, 1)
        assert "was not closed" in caplog.text
        assert was.condition.fault == "another broker leads it"

    def test_a_lead_that_stays_goes_up_by_an_epoch(self, crew):
        create(crew, "t", 2)
        (index,) = led(crew, "t")[2]
        was = crew.partition("t", index)
        self.move(crew, index, 2)
        assert crew.partition("t", index) is was
        assert was.leader_epoch == 1

    def test_a_node_that_is_none_of_the_workers_leads_nothing(self, crew):
        create(crew, "t", 2)
        before = led(crew, "t")
        self.move(crew, 0, 9)
        assert led(crew, "t") == before

    def test_it_is_led_there_after_a_start_as_well(self, crew):
        create(crew, "t", 2)
        (index,) = led(crew, "t")[2]
        self.move(crew, index, 1)
        crew.kill()
        crew.start()
        assert led(crew, "t") == {1: [0, 1], 2: []}

    def test_whoever_withdraws_it_leads_it_again_or_removes_it(self, crew):
        create(crew, "t", 2)
        (index,) = led(crew, "t")[2]
        cluster = crew.clusters[2]
        append(crew.partition("t", index))
        partition = cluster.withdraw("t", index)
        assert cluster.withdraw("t", index) is None
        assert ("t", index) not in crew.logs[2].partitions
        cluster.lead_again(cluster.topics["t"].id, index, was_clean=False)
        assert cluster.topics["t"].find(index).leader_epoch == 1
        assert partition.directory == cluster.topics["t"].find(index).directory
        again = cluster.withdraw("t", index)
        delete_topic(crew.clusters[1], "t")
        assert crew.storage.is_dir(again.directory)
        cluster.remove_withdrawn(again)
        assert not crew.storage.is_dir(again.directory)
