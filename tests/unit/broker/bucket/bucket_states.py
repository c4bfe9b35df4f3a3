"""States of clusters over a store, as tests need them."""

from horolog.broker.bucket.bucket_entries import BrokerRegistered
from horolog.broker.bucket.bucket_state import BucketState, MemberListener
from horolog.broker.cluster.cluster_state import TopicsCreated
from horolog.broker.on_record.cluster_file import StoredTopic

ID = b"t" * 16


def registered(node, **others):
    listeners = (MemberListener("PLAINTEXT", "PLAINTEXT", f"host{node}", 9092),)
    return BrokerRegistered(node, f"machine{node}", listeners, **others)


def after(*entries, state=None):
    state = BucketState() if state is None else state
    for entry in entries:
        state = state.apply(entry)
    return state


def created(name="t", partitions=6, topic_id=ID, leads=()):
    return TopicsCreated((StoredTopic(name, topic_id, partitions, {}),), leads)


def of(*nodes, partitions=6):
    """A cluster of these members, and a topic."""
    return after(*map(registered, nodes), created(partitions=partitions))


def led(state, topic_id=ID):
    """The leader of each partition."""
    return [lead.node for (of_topic, _), lead in sorted(state.leads.items()) if of_topic == topic_id]


def epochs(state, topic_id=ID):
    return [lead.epoch for (of_topic, _), lead in sorted(state.leads.items()) if of_topic == topic_id]


def check(state):
    """What holds in each state."""
    assert state.nodes == tuple(sorted(state.members))
    places = {(topic.id, index) for topic in state.topics.values() for index in range(topic.partition_count)}
    assert set(state.leads) == set(state.lineages) == places
    for place, line in state.lineages.items():
        lead = state.leads[place]
        assert [one.epoch for one in line] == sorted({one.epoch for one in line})
        assert all(one.end is not None for one in line[:-1])
        if lead.node >= 0:
            assert (line[-1].epoch, line[-1].wal, line[-1].end) == (lead.epoch, state.wal_of(lead.node), None)
        else:
            assert not line or line[-1].end is not None
    for node, by in state.suspicions.items():
        assert by.keys() - {node}
        assert {node, *by} <= state.members.keys()
