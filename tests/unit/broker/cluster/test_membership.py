"""How the only broker of a cluster belongs to it, and who the members of a cluster are."""

import pytest

from horolog.broker.cluster.journal import WholeFile
from horolog.broker.cluster.membership import Members, SoleMember
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.on_record.cluster_file import ClusterFile
from tests.support.at_once import at_once
from tests.support.crew import Crew
from tests.support.crew_records import Alone


def test_a_broker_is_live_whatever_others_know_of_it():
    members = Members(1, (1, 2, 3), frozenset({1}))
    assert members.others == (2, 3)
    assert members.with_live(frozenset({3})).live == {1, 3}
    assert Members.of_one(4) == Members(4, (4,), frozenset({4}))
    assert Members.of_one(4).others == ()


@pytest.fixture
def member():
    return SoleMember(1, ClusterFile(Crew((1,)).storage, "/data"))


def test_what_a_sole_member_has_written_all_members_have_applied(member):
    told = []
    member.announce(5, lambda: told.append(5))
    assert told == [5]
    member.applied(5)
    member.goes_on()
    member.follow_live(told.append)
    member.listen(lambda: told.append("news"), lambda: told.append("look"), lambda: None)
    assert told == [5]
    assert isinstance(member.journal, WholeFile)
    assert repr(member) == "<SoleMember 1>"


def test_a_sole_member_starts_on_what_workers_have_left():
    crew = Crew((1, 2)).start()
    at_once(crew.clusters[1].create_topics, [NewTopic("t", 2)])
    crew.kill()
    assert set(Alone(crew).cluster.topics) == {"t"}
    assert not crew.storage.exists("/data/horolog-journal")
