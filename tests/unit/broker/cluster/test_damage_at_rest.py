"""What a start makes of a journal that was damaged when every worker had ended."""

import json

import pytest

from horolog.broker.cluster import found_journals, settling
from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.log.files import log_starts
from horolog.broker.log.storage import DataFolderError
from horolog.broker.on_record.cluster_file import ClusterFile
from horolog.broker.on_record.stored_rules import StoredRule
from tests.support.at_once import at_once, delete_topic
from tests.support.crew import Crew
from tests.support.crew_records import Alone, append, filled, values
from tests.support.guarded_broker import STANDARD_AUTHORIZER

JOURNAL, CLUSTER = "/data/horolog-journal", "/data/horolog-cluster"
ACL_RULE = StoredRule("acl", "a", {"host": "*"})


def hurt_line(crew, kind, byte=0):
    """Hurt the last line of a kind, in its kind or elsewhere."""
    data = crew.storage.read_all(JOURNAL)
    crew.storage.corrupt(JOURNAL, data.rindex(b'"kind": "' + kind) + (9 if byte else -2), 1)


def log_starts_say(crew, number):
    """So often was the record written."""
    path = f"/data/{log_starts.LOG_STARTS}"
    starts = log_starts.decode(crew.storage.read_all(path)) if crew.storage.exists(path) else {}
    crew.storage.write_atomically(path, log_starts.encode(starts, number))


class TestDamageAtRest:
    """Every worker has ended, and something has happened to what they left: nothing that may be in it does harm."""

    @pytest.fixture
    def crew(self):
        """With topics and ids on record, and others that only the journal has."""
        crew = filled(Crew((1, 2), authorizer_class_name=STANDARD_AUTHORIZER))
        self.ids = [crew.clusters[1].producer_ids.take()]
        crew.stop()
        assert crew.merge()
        crew.start()
        one = crew.clusters[1]
        at_once(one.create_topics, [NewTopic("c", 1, overrides={"retention.ms": "5"})])
        at_once(one.alter_topic_configs, {"a": {"retention.ms": "123"}})
        self.ids.append(one.producer_ids.take())
        self.ids.append(crew.clusters[2].producer_ids.take())
        crew.kill()
        return crew

    def accepted(self, crew):
        """What a start finds where lost rules are accepted, which refuses else."""
        with pytest.raises(DataFolderError, match=r"horolog\.lost\.rules\.accept=true"):
            crew.start()
        crew.kill()
        crew.set(horolog_lost_rules_accept=True)
        return crew.start().clusters[1]

    def unknown(self, cluster):
        return {name for name, topic in cluster.topics.items() if topic.settings_unknown}

    def given_out_again(self, crew):
        return {one.producer_ids.take() for one in crew.clusters.values()} & {
            first + more for first in self.ids for more in range(1000)
        }

    def test_a_bit_in_its_head_costs_nothing(self, crew, caplog):
        crew.storage.corrupt(JOURNAL, 20, 1)
        one = crew.start().clusters[1]
        assert "in one of its heads" in caplog.text
        assert (one.topics["a"].overrides, one.topics["c"].overrides) == (
            {"retention.ms": "123"},
            {"retention.ms": "5"},
        )
        assert self.given_out_again(crew) == set()

    @pytest.mark.parametrize("left", [b"", b"nonsense\n", None], ids=["empty", "garbage", "missing"])
    def test_one_of_which_nothing_is_left(self, crew, left, caplog):
        if left is None:
            crew.storage.remove(JOURNAL)
        else:
            crew.storage.write_atomically(JOURNAL, left)
        one = self.accepted(crew)
        assert ("it is missing" if left is None else "its head cannot be read") in caplog.text
        assert set(one.topics) == {"a", "b", "c"}
        assert self.unknown(one) == {"a", "b", "c"}
        assert self.given_out_again(crew) == set()
        assert left is None or crew.storage.read_all(JOURNAL + ".damaged") == left
        crew.stop()
        crew.merge()
        crew.set(horolog_lost_rules_accept=False)
        assert self.unknown(crew.start().clusters[1]) == {"a", "b", "c"}

    @pytest.mark.parametrize("byte", [0, 1], ids=["its kind is known", "it is not"])
    def test_settings(self, crew, byte):
        hurt_line(crew, b"TopicConfigsChanged", byte)
        one = self.accepted(crew) if byte else crew.start().clusters[1]
        assert self.unknown(one) == {"a", "b", "c"}
        assert self.given_out_again(crew) == set()

    def test_settings_of_all(self, crew):
        crew.start()
        at_once(crew.clusters[1].alter_broker_configs, "", {"log.retention.ms": "5000"})
        crew.kill()
        hurt_line(crew, b"BrokerConfigsChanged")
        assert self.unknown(crew.start().clusters[1]) == {"a", "b", "c"}

    def test_a_topic_that_was_made_is_found_by_its_folder(self, crew):
        hurt_line(crew, b"TopicsCreated")
        one = crew.start().clusters[1]
        assert (set(one.topics), self.unknown(one)) == ({"a", "b", "c"}, {"c"})

    @pytest.mark.parametrize("byte", [0, 1], ids=["its kind is known", "it is not"])
    @pytest.mark.parametrize("lines", [1, 2])
    def test_producer_ids(self, crew, byte, lines):
        data = crew.storage.read_all(JOURNAL)
        for _ in range(lines):
            place = data.rindex(b'"kind": "ProducerIdsReserved"')
            crew.storage.corrupt(JOURNAL, place + (9 if byte else -2), 1)
            data = data[:place]
        if byte:
            self.accepted(crew)
        else:
            crew.start()
        assert self.given_out_again(crew) == set()

    @pytest.mark.parametrize("byte", [0, 1], ids=["its kind is known", "it is not"])
    def test_the_first_rule_that_there_is(self, crew, byte):
        """It was whole, synced and acknowledged: somebody counts on it."""
        crew.start()
        at_once(crew.clusters[1].change_rules, lambda _: RulesChanged((ACL_RULE,)))
        crew.kill()
        hurt_line(crew, b"RulesChanged", byte)
        assert self.accepted(crew).rules("acl") == {}
        crew.stop()
        crew.set(horolog_lost_rules_accept=False)
        crew.merge()
        crew.start()

    def test_where_nobody_goes_by_an_access_list_doubt_is_no_reason_to_stay_down(self, crew):
        hurt_line(crew, b"TopicConfigsChanged", 1)
        crew.set(authorizer_class_name="")
        one = crew.start().clusters[1]
        assert self.unknown(one) == {"a", "b", "c"}
        crew.stop()
        crew.merge()
        crew.set(authorizer_class_name=STANDARD_AUTHORIZER)
        self.accepted(crew)

    @pytest.mark.parametrize("lines", [1, 3])
    def test_lines_at_its_end_that_are_gone(self, crew, lines, caplog):
        """Cut between two lines, or an older copy: what workers have applied tells how many there were."""
        crew.start()
        at_once(crew.clusters[1].alter_topic_configs, {"a": {"retention.ms": "9"}})
        at_once(crew.clusters[1].create_topics, [NewTopic("d", 1)])
        self.ids.append(crew.clusters[1].producer_ids.take())
        for logs in crew.logs.values():
            logs.write_log_starts()
        crew.kill()
        data = crew.storage.read_all(JOURNAL)
        crew.storage.write_atomically(JOURNAL, b"".join(data.splitlines(keepends=True)[:-lines]))
        one = self.accepted(crew)
        assert f"{lines} entries are missing" in caplog.text
        assert self.unknown(one) >= {"a", "b", "c"}
        assert self.given_out_again(crew) == set()

    def test_an_older_record_beside_it(self, crew):
        whole = crew.storage.read_all(CLUSTER)
        crew.start()
        at_once(crew.clusters[1].alter_topic_configs, {"b": {"retention.ms": "9"}})
        crew.stop()
        crew.merge()
        crew.start()
        crew.kill()
        crew.storage.write_atomically(CLUSTER, whole)
        assert self.unknown(self.accepted(crew)) == {"a", "b", "c"}
        assert self.given_out_again(crew) == set()

    def test_what_is_made_of_the_journal_alone_is_the_newest_record(self, crew, caplog):
        """Its number is above every one before, so that the next start takes it for no older copy."""
        written = ClusterFile(crew.storage, "/data").load().number
        log_starts_say(crew, written)
        crew.storage.remove(CLUSTER)
        crew.set(horolog_lost_rules_accept=True)
        crew.merge()
        assert ClusterFile(crew.storage, "/data").load().number > written
        Alone(crew).close()
        assert "older copy" not in caplog.text
        crew.set(horolog_lost_rules_accept=False)
        Alone(crew).close()

    def test_a_journal_that_is_there_again_after_its_merge_counts_no_more(self, crew):
        journal = crew.storage.read_all(JOURNAL)
        crew.storage.remove(CLUSTER)
        crew.merge()
        merged = crew.storage.read_all(CLUSTER)
        crew.storage.write_atomically(JOURNAL, journal)
        crew.merge()
        assert crew.storage.read_all(CLUSTER) == merged

    def test_an_older_record_and_an_older_journal_together(self, crew):
        """They go with each other, and not with what was written since."""
        log_starts_say(crew, ClusterFile(crew.storage, "/data").load().number + 1)
        assert self.unknown(self.accepted(crew)) == {"a", "b", "c"}
        assert self.given_out_again(crew) == set()

    def test_a_topic_that_was_deleted_and_made_anew_keeps_its_own_id(self, crew):
        """The line of its deletion is lost: settings of the topic before must delete nothing of the new one."""
        crew.start()
        delete_topic(crew.clusters[1], "c")
        at_once(crew.clusters[1].create_topics, [NewTopic("c", 1, overrides={"retention.ms": "-1"})])
        append(crew.partition("c", 0), b"new")
        topic_id = crew.clusters[1].topics["c"].id
        crew.kill()
        hurt_line(crew, b"TopicsDeleted")
        topic = crew.start().clusters[1].topics["c"]
        assert (topic.id, topic.overrides) == (topic_id, {"retention.ms": "-1"})
        assert values(crew.partition("c", 0)) == [b"new"]

    def test_the_record_says_that_a_journal_goes_on_from_it_and_older_releases_refuse_that(self, crew):
        def version():
            return json.loads(crew.storage.read_all(CLUSTER).split(b"\n")[0][9:])["version"]

        assert version() == 3
        crew.start()
        assert version() == 3
        crew.stop()
        assert crew.merge()
        assert version() == 1
        crew.start()
        crew.kill()
        Alone(crew).close()
        assert version() == 1

    def test_a_worker_does_not_begin_with_less_than_the_others_know(self, crew):
        crew.start()
        crew.kill(2)
        crew.storage.corrupt(CLUSTER, crew.storage.read_all(CLUSTER).index(b'"name"'), 1)
        crew.storage.corrupt(JOURNAL, 20, 1)
        with pytest.raises(DataFolderError, match="stop all workers"):
            crew.begin(2)
        one = crew.clusters[1]
        one.changes.check_record()
        with pytest.raises(DataFolderError, match="horolog-cluster is damaged"):
            settling.refuse_what_others_know(
                ClusterFile(crew.storage, "/data").load(),
                found_journals.find(crew.storage, ["/data"])._replace(whole=None),
            )
        assert crew.begin(2).state == one.state
        crew.stop()
        assert crew.merge()
        assert self.unknown(crew.start().clusters[1]) == set()
