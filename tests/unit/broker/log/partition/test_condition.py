"""The conditions of a partition, and which follows from which."""

from horolog.broker.log.partition.condition import DELETED, SERVING, Condition, PartitionState


def test_it_goes_from_serving_to_read_only_and_back():
    stopped = SERVING.read_only("no room")
    assert (stopped.fault, stopped.stopped) == (None, "no room")
    assert stopped.read_only("worse").stopped == "worse"
    assert stopped.resumed() is SERVING


def test_what_goes_offline_stays_stopped():
    offline = SERVING.read_only("a sync has failed").offline("no disk")
    assert offline == PartitionState("no disk", "a sync has failed")
    assert offline.offline("still no disk") == PartitionState("still no disk", "a sync has failed")
    assert offline.resumed() == SERVING.offline("no disk")
    assert SERVING.offline("no disk").read_only("a sync has failed") == offline


def test_nothing_brings_a_deleted_partition_back():
    gone = SERVING.read_only("no room").deleted()
    assert (gone.fault, gone.is_deleted) == (DELETED, True)
    assert gone.read_only("a sync has failed") is gone.offline("no disk") is gone
    assert gone.resumed().is_deleted
    assert not SERVING.offline("no disk").is_deleted


def test_a_condition_tells_its_state_in_words_and_whose_it_is(caplog):
    condition = Condition("t-0")
    assert (condition.takes_appends, str(condition)) == (True, "serves")
    condition.stop("no room")
    assert "t-0 accepts no appends until its disk works again: no room" in caplog.text
    assert (condition.takes_appends, condition.stopped, condition.fault) == (False, "no room", None)
    assert str(condition) == "accepts no appends: no room"
    error = condition.error("/data/t-0")
    assert (str(error), error.path) == ("t-0 accepts no appends: no room", "/data/t-0")
    condition.go_offline("no disk")
    assert repr(condition) == "<Condition of t-0: is offline: no disk>"


def test_nothing_that_a_worker_finds_late_brings_a_deleted_partition_back():
    condition = Condition("t-0", PartitionState(stopped="no room"))
    condition.resume()
    assert condition.state is SERVING
    condition.delete()
    condition.stop("no room")
    condition.go_offline("away")
    condition.resume()
    assert condition.is_deleted
