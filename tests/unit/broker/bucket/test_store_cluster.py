"""The cluster of each broker over one store: the same topics everywhere, and each partition served by the broker that leads it."""

from horolog.broker.base.answers import run
from horolog.broker.base.late_answers import ANSWERED_WITHIN_S
from horolog.broker.cluster.cluster_state import NO_NODE, Lead
from horolog.broker.cluster.new_topics import NewPartitions, NewTopic
from horolog.broker.cluster.placement import Placement
from horolog.broker.handlers.lookup import Leadership, leadership
from horolog.broker.log.storage import MemoryStorage
from horolog.protocol.errors import ErrorCode
from tests.support.bucket_crew import BucketCrew


def create(crew, node=1, name="t", partitions=4, **others):
    results = []
    crew[node].create_topics([NewTopic(name, partitions, **others)], results.extend)
    crew.run_for(1)
    return results


def test_a_topic_that_one_broker_creates_is_served_by_all():
    crew = BucketCrew(1, 2, 3)
    (topic,) = create(crew)
    assert {node: crew[node].topics["t"].id for node in (1, 2, 3)} == dict.fromkeys((1, 2, 3), topic.id)
    served = crew.served("t")
    assert sorted(served) == [0, 1, 2, 3]
    assert all(len(nodes) == 1 for nodes in served.values())
    for index, (node,) in served.items():
        assert crew[1].state.leader(topic.id, index) == node
        assert ("t", index) in crew.brokers[node].led
    assert crew[1].nodes == (1, 2, 3)


def test_partitions_are_added_and_a_topic_is_deleted_everywhere():
    crew = BucketCrew(1, 2)
    (topic,) = create(crew)
    crew[2].add_partitions([NewPartitions("t", 6)], lambda failures: None)
    crew.run_for(1)
    assert sorted(crew.served("t")) == list(range(6))
    crew[1].delete_topics({"t": topic.id}, lambda failures: None)
    crew.run_for(1)
    assert crew.served("t") == {}
    assert not any(broker.logs.partitions for broker in crew.brokers.values())
    create(crew, partitions=1)
    assert list(crew.served("t")) == [0]


def test_a_topic_is_deleted_however_long_its_local_files_stay():
    crew = BucketCrew(1)
    (topic,) = create(crew)
    crew.brokers[1].logs.folders[0].drop = lambda *_: None
    crew[1].delete_topics({"t": topic.id}, lambda failures: None)
    crew.run_for(1)
    assert crew[1].state.deleting == {}
    (again,) = create(crew, partitions=5)
    assert again.id != topic.id
    assert crew[1].state.topics["t"].partition_count == 5


def test_a_topic_that_is_deleted_while_it_is_opened_is_not_served():
    crew = BucketCrew(1)
    results = []
    crew[1].create_topics([NewTopic("t", 1)], results.extend)
    while "t" not in crew[1].topics:
        crew.run_for(0.01)
    assert crew.served("t") == {}
    crew[1].delete_topics({"t": crew[1].topics["t"].id}, lambda failures: None)
    crew.run_for(1)
    assert "t" not in crew[1].topics


def test_others_take_over_what_a_dead_broker_led():
    crew = BucketCrew(1, 2, 3)
    create(crew)
    dead = crew.served("t")[0][0]
    crew.brokers[dead].kill()
    crew.run_for(10)
    served = crew.served("t")
    assert sorted(served) == [0, 1, 2, 3]
    assert all(len(nodes) == 1 and nodes != [dead] for nodes in served.values())
    alive = next(node for node in (1, 2, 3) if node != dead)
    assert dead not in crew[alive].nodes
    assert dead not in crew.brokers[alive].live[-1]
    partition = crew[served[0][0]].topics["t"].find(0)
    assert partition.leader_epoch == 1


def test_a_broker_that_comes_back_leads_again_from_an_empty_folder():
    crew, storage = BucketCrew(), MemoryStorage()
    first = crew.start(1, storage)
    create(crew)
    first.kill()
    crew.start(1, storage)
    crew.run_for(5)
    assert sorted(crew.served("t")) == [0, 1, 2, 3]
    assert crew[1].topics["t"].find(0).leader_epoch == 1


def test_a_partition_is_handed_over_and_back():
    crew = BucketCrew(1, 2)
    (topic,) = create(crew)
    place = topic.id, 0
    (giver,) = crew.served("t")[0]
    heir = 3 - giver

    async def give(node, to):
        await crew.brokers[node].handing.give({place: Lead(to, crew[node].state.leads[place].epoch + 1)})

    run(give(giver, heir))
    assert crew.served("t").get(0) is None
    assert crew[giver].topics["t"].find(0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    crew.run_for(2)
    assert crew.served("t")[0] == [heir]
    assert ("t", 0) in crew.brokers[giver].led_elsewhere
    run(give(heir, giver))
    crew.run_for(2)
    assert crew.served("t")[0] == [giver]
    run(give(giver, 9))
    crew.run_for(2)
    assert crew.served("t")[0] == [giver]


def test_a_broker_leaves_and_takes_nothing_with_it():
    crew = BucketCrew(1, 2)
    create(crew)
    crew.brokers[1].watch.end()
    run(crew.brokers[1].handing.leave())
    crew.run_for(2)
    assert set(map(tuple, crew.served("t").values())) == {(2,)}
    assert crew[2].nodes == (2,)
    assert crew[1].take_away((b"x" * 16, 0)) is None


def test_clients_learn_the_leader_of_a_partition_while_it_is_being_opened():
    crew, storage = BucketCrew(2), MemoryStorage()
    first = crew.start(1, storage)
    create(crew, node=2)
    first.kill()
    again = crew.start(1, storage, runs_for_s=0)
    topic = crew[1].topics["t"]
    mine = [index for topic_id, index in crew[1].state.led_by(1) if topic_id == topic.id]
    assert len(mine) == 2
    assert not topic.led_here
    placement = Placement(crew[1], None, again.membership.members)
    assert [leadership(placement, topic, index) for index in mine] == [Leadership(ErrorCode.NONE, 1, 1, [1], [])] * 2
    assert {leadership(placement, topic, index).leader for index in range(4)} == {1, 2}


def test_the_last_broker_that_leaves_names_itself():
    crew = BucketCrew(1)
    (topic,) = create(crew, partitions=1)
    crew.brokers[1].watch.end()
    run(crew.brokers[1].handing.leave())
    crew.run_for(1)
    assert crew[1].state.leader(topic.id, 0) == NO_NODE
    placement = Placement(crew[1], None, crew.brokers[1].membership.members)
    assert leadership(placement, crew[1].topics["t"], 0) == Leadership(ErrorCode.NONE, 1, 0, [1], [])


def test_a_broker_that_leaves_names_no_other_that_is_gone():
    """Its clients would look for that one at its own address."""
    crew = BucketCrew(1, 2, 3)
    create(crew)
    crew.brokers[1].watch.end()
    crew.brokers[2].kill()
    crew.run_for(10)
    assert 2 in crew.brokers[1].live[-1]
    run(crew.brokers[1].handing.leave())
    crew.run_for(1)
    assert 2 not in crew[1].nodes
    assert 2 not in crew.brokers[1].live[-1]


def test_settings_of_a_topic_change_everywhere():
    crew = BucketCrew(1, 2)
    create(crew)
    crew[1].alter_topic_configs({"t": {"retention.ms": "5"}}, lambda error: None)
    crew.run_for(1)
    for node in (1, 2):
        assert crew[node].topics["t"].config.retention_ms == 5
        assert all(one.config.retention_ms == 5 for one in crew[node].topics["t"].led_here)


def test_a_start_moves_in_the_store_and_a_deleted_topic_is_removed_from_it():
    crew = BucketCrew(1)
    (topic,) = create(crew, partitions=1)
    logs, faults = crew[1]._log_side, []
    partition = crew[1].topics["t"].find(0)
    crew[1].move_start(partition, 3, faults.append)
    logs.is_led = False
    crew[1].move_start(partition, 4, faults.append)
    assert logs.moves == [(partition, 3), (partition, 4)]
    assert (faults[0], faults[1].error) == (None, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    crew[1].delete_topics({"t": topic.id}, lambda failures: None)
    crew.run_for(1)
    assert logs.removed == [(topic.id, 0)]


def test_a_start_that_the_store_does_not_confirm_is_answered_in_time():
    crew = BucketCrew(1)
    create(crew, partitions=1)
    logs, faults, moved = crew[1]._log_side, [], []
    logs.move_start = lambda partition, offset, told: moved.append(told)
    crew[1].move_start(crew[1].topics["t"].find(0), 3, faults.append)
    crew.run_for(ANSWERED_WITHIN_S - 1)
    assert faults == []
    crew.run_for(2)
    moved[0](True)
    assert [one.error for one in faults] == [ErrorCode.REQUEST_TIMED_OUT]


def test_the_heir_of_a_partition_coordinates_what_it_keeps_while_it_opens_it():
    crew = BucketCrew(1, 2)
    (topic,) = create(crew)
    (giver,) = crew.served("t")[0]
    heir = 3 - giver
    place = topic.id, 0
    placement = Placement(crew[heir], None, crew.brokers[heir].membership.members)
    run(crew.brokers[giver].handing.give({place: Lead(heir, crew[giver].state.leads[place].epoch + 1)}))
    seen = []
    while crew.served("t").get(0) != [heir]:
        crew.run_for(0.01)
        seen.append((crew[heir].is_opening(place), placement.lead(*place).node, placement.coordinator(*place)))
    assert (True, NO_NODE, heir) in seen
    assert seen[-1] == (False, heir, heir)
    assert {coordinator for opening, _, coordinator in seen if not opening} <= {giver, heir}


def test_a_partition_passes_from_its_leader_to_its_heir():
    """The leader knows when the others know the heir, and the heir when it serves the partition."""
    crew = BucketCrew(1, 2)
    (topic,) = create(crew)
    assert not crew[1].passing.places
    assert not crew[2].passing.places
    (giver,) = crew.served("t")[0]
    heir = 3 - giver
    place = topic.id, 0
    run(crew.brokers[giver].handing.give({place: Lead(heir, crew[giver].state.leads[place].epoch + 1)}))
    seen = []
    while crew.served("t").get(0) != [heir]:
        seen.append((place in crew[giver].passing.places, crew[heir].state.leader(*place) == heir))
        seen.append((place in crew[heir].passing.places, crew[heir].is_opening(place)))
        crew.run_for(0.01)
    assert set(seen[::2]) >= {(True, False), (False, True)}
    assert (False, False) not in seen[::2], "it passes until the heir knows"
    assert set(seen[1::2]) == {(False, False), (True, True)}
    assert not crew[giver].passing.places
    assert not crew[heir].passing.places


def test_a_partition_of_a_fenced_leader_does_not_pass():
    """Its heir waits for the lease."""
    crew = BucketCrew(1, 2)
    create(crew)
    (dead,) = crew.served("t")[0]
    crew.brokers[dead].kill()
    opening = set()
    while not opening or crew[3 - dead].opening_count:
        crew.run_for(0.05)
        opening |= {place for place in crew[3 - dead].state.leads if crew[3 - dead].is_opening(place)}
        assert not crew[3 - dead].passing.places
    assert len(opening) == 2


def test_the_partitions_of_a_broker_that_leaves_pass_until_the_others_know():
    crew = BucketCrew(1, 2)
    create(crew)
    mine = set(crew[1].state.led_by(1))
    crew.brokers[1].watch.end()
    run(crew.brokers[1].handing.leave())
    assert crew[1].passing.places.keys() == mine
    while crew[1].passing.places:
        assert crew[2].state.leader(*min(mine)) != 2 or crew[2].is_opening(min(mine))
        crew.run_for(0.01)
    assert crew[2].state.led_by(1) == []
