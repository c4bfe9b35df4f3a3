"""A partition goes where an admin client wants it."""

from functools import partial

from horolog.broker.bucket.store_hand_overs import StoreHandOvers
from horolog.broker.cluster.placement import Placement
from tests.support.bucket_crew import BucketCrew
from tests.unit.broker.bucket.test_store_cluster import create


def hand_overs(crew, node):
    broker = crew.brokers[node]
    placement = Placement(broker.cluster, None, broker.membership.members)
    made = StoreHandOvers(broker.cluster, placement, None, None, None, None)
    made.handing = broker.handing
    return made


def test_the_leader_moves_a_partition_and_says_when_it_has():
    crew, outcomes = BucketCrew(1, 2), []
    create(crew)
    (leader,) = crew.served("t")[0]
    moving = hand_overs(crew, leader)
    moving.move("t", 0, 3 - leader, outcomes.append)
    assert moving.moves == {("t", 0): 3 - leader}
    crew.run_for(2)
    assert (outcomes, moving.moves) == ([None], {})
    assert crew.served("t")[0] == [3 - leader]


def test_a_broker_that_is_fenced_meanwhile_refuses():
    crew, outcomes = BucketCrew(1, 2), []
    create(crew)
    (leader,) = crew.served("t")[0]
    crew.brokers[leader].cluster._leading._log_side.ship_all = lambda partitions, done: done(None)
    hand_overs(crew, leader).move("t", 0, 3 - leader, partial(outcomes.append))
    assert outcomes[0].message == "the broker is fenced"
