"""How the only broker of a cluster belongs to it, and who the members of a cluster are."""

import pytest

from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster.membership import Members, SoleMember
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage.memory_disk import ALL
from horolog.broker.on_record.cluster_file import ClusterFile
from tests.support.at_once import at_once
from tests.support.crew import Crew
from tests.support.crew_records import Alone, append, values


def test_a_broker_is_live_whatever_others_know_of_it():
    members = Members(1, (1, 2, 3), frozenset({1}))
    assert members.others == (2, 3)
    assert members.with_live(frozenset({3})).live == {1, 3}
    assert Members.of_one(4) == Members(4, (4,), frozenset({4}))
    assert Members.of_one(4).others == ()


@pytest.fixture
def member():
    crew = Crew((1,))
    logs = LogManager(crew.folders, crew.storage, crew.clock, crew.settings_of(1))
    return SoleMember(1, logs, ClusterFile(crew.storage, "/data"), AtOnce())


def test_what_a_sole_member_has_written_all_members_have_applied(member):
    told = []
    member.announce(5, lambda: told.append(5))
    assert told == [5]
    member.applied(5)
    member.goes_on()
    member.follow_live(told.append)
    member.listen(lambda: told.append("news"), lambda: told.append("look"), lambda: None)
    assert told == [5]
    assert not member.is_shared
    assert repr(member) == "<SoleMember 1>"


def test_a_sole_member_starts_on_what_workers_have_left():
    crew = Crew((1, 2)).start()
    at_once(crew.clusters[1].create_topics, [NewTopic("t", 2)])
    crew.kill()
    assert set(Alone(crew).cluster.topics) == {"t"}
    assert not crew.storage.exists("/data/horolog-journal")


class TestWhereNothingCanBeWritten:
    """A broker alone was killed, with changes in its journal, and the next one finds a disk that takes nothing."""

    @pytest.fixture
    def crew(self):
        crew = Crew((1,))
        alone = Alone(crew)
        append(alone.cluster.create_topic("t", 1, {"retention.ms": "77"}).find(0), b"v")
        alone.logs.abandon()
        crew.storage.die()
        return crew

    @pytest.fixture(params=["full", "broken"])
    def next_one(self, crew, request):
        if request.param == "full":
            crew.storage.capacity_bytes = crew.storage.used_bytes()
        else:
            crew.storage.fail("sync", "horolog-cluster", times=ALL)
        return Alone(crew)

    def test_the_next_one_serves_what_is_there(self, next_one, caplog):
        topic = next_one.cluster.topics["t"]
        assert (values(topic.find(0)), topic.overrides) == ([b"v"], {"retention.ms": "77"})
        assert any("could not be saved" in one.message for one in caplog.get_records("setup"))

    def test_and_so_does_the_one_after_it(self, crew, next_one):
        next_one.logs.abandon()
        crew.storage.die()
        assert Alone(crew).cluster.topics["t"].overrides == {"retention.ms": "77"}

    @pytest.mark.parametrize("is_killed", [False, True])
    def test_changes_go_on_once_something_can_be_written(self, crew, next_one, is_killed):
        crew.storage.capacity_bytes = None
        crew.storage.heal()
        next_one.cluster.create_topic("u", 1, {})
        if is_killed:
            next_one.logs.write_log_starts()
            next_one.logs.abandon()
            crew.storage.die()
        else:
            next_one.close()
        found = Alone(crew)
        assert (set(found.cluster.topics), found.cluster.state.rules_in_doubt) == ({"t", "u"}, False)
        assert not crew.storage.exists("/data/horolog-journal")

    def test_log_starts_that_are_written_meanwhile_do_not_make_it_an_older_one(self, crew, next_one):
        crew.storage.capacity_bytes = None
        crew.storage.heal()
        next_one.logs.write_log_starts()
        next_one.logs.abandon()
        crew.storage.die()
        found = Alone(crew).cluster
        assert (found.topics["t"].overrides, found.state.rules_in_doubt) == ({"retention.ms": "77"}, False)


def test_workers_go_on_from_what_a_broker_alone_has_left(caplog):
    crew = Crew((1, 2))
    alone = Alone(crew)
    append(alone.cluster.create_topic("t", 2, {"retention.ms": "77"}).find(0), b"v")
    log_start.delete_records_before(alone.cluster.topics["t"].find(0), 1)
    alone.logs.write_log_starts()
    alone.logs.abandon()
    crew.storage.die()
    crew.start()
    assert crew.clusters[1].topics["t"].overrides == {"retention.ms": "77"}
    assert crew.partition("t", 0).log_start_offset == 1, "Kafka's files are those of a broker alone"


def test_workers_serve_what_it_has_left_on_a_full_disk():
    """They cannot change anything before there is room: see test_journals_begun_late."""
    crew = Crew((1, 2))
    alone = Alone(crew)
    alone.cluster.create_topic("t", 2, {})
    alone.logs.abandon()
    crew.storage.die()
    crew.storage.capacity_bytes = crew.storage.used_bytes()
    crew.start()
    assert [crew.partition("t", index).high_watermark for index in range(2)] == [0, 0]
