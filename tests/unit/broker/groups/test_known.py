"""Decisions about groups see the broker as it is now."""

from horolog.broker.groups.known import Known


def test_topics_settings_and_time_are_those_of_the_broker(world):
    known = Known(world.cluster, world.clock)
    assert known.topics["t"] is known.by_id[world.cluster.topics["t"].id]
    assert known.settings is world.cluster.settings
    before = known.now_ms()
    world.clock.advance(5)
    assert known.now_ms() == before + 5


def test_topics_are_found_by_pattern(world):
    known = Known(world.cluster, world.clock)
    world.topic("orders")
    assert known.matching("or.*") == {"orders"}
    assert "1 patterns" in repr(known)
