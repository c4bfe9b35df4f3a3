"""The conditions of a partition, and which follows from which."""

from horolog.broker.log.partition.condition import DELETED, SERVING, Condition


def test_it_goes_from_serving_to_read_only_and_back():
    stopped = SERVING.read_only("no room")
    assert (stopped.fault, stopped.stopped) == (None, "no room")
    assert stopped.read_only("worse").stopped == "worse"
    assert stopped.resumed() is SERVING


def test_what_goes_offline_stays_stopped():
    offline = SERVING.read_only("a sync has failed").offline("no disk")
    assert offline == Condition("no disk", "a sync has failed")
    assert offline.offline("still no disk") == Condition("still no disk", "a sync has failed")
    assert offline.resumed() == SERVING.offline("no disk")
    assert SERVING.offline("no disk").read_only("a sync has failed") == offline


def test_nothing_brings_a_deleted_partition_back():
    gone = SERVING.read_only("no room").deleted()
    assert (gone.fault, gone.is_deleted) == (DELETED, True)
    assert gone.read_only("a sync has failed") is gone.offline("no disk") is gone
    assert gone.resumed().is_deleted
    assert not SERVING.offline("no disk").is_deleted
