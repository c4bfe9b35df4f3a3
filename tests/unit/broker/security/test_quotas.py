"""Which quota holds for whom, who shares it, and what those who are over it are told."""

import itertools
import math

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.base.metrics import Metrics
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.security.quota_entities import (
    CLIENT_ID,
    CONNECTION,
    FETCH,
    IP,
    MUTATION,
    PRODUCE,
    REQUEST,
    USER,
    entity_of,
    rule_of,
)
from horolog.broker.security.quotas import THROTTLE_SECONDS, ClientQuotas, Limit, QuotaTable

LEVELS = [
    ({USER: "ann", CLIENT_ID: "app"}, ("ann", "app")),
    ({USER: "ann", CLIENT_ID: None}, ("ann", "app")),
    ({USER: "ann"}, ("ann", None)),
    ({USER: None, CLIENT_ID: "app"}, ("ann", "app")),
    ({USER: None, CLIENT_ID: None}, ("ann", "app")),
    ({USER: None}, ("ann", None)),
    ({CLIENT_ID: "app"}, (None, "app")),
    ({CLIENT_ID: None}, (None, "app")),
]
"""From the first that counts to the last, with who shares the rate."""


class World:
    def __init__(self, parts=1, **settings):
        self.clock = ManualClock(monotonic=1000.0)
        self.metrics = Metrics()
        given = {key.replace("_", "."): value for key, value in settings.items()}
        self.quotas = ClientQuotas(from_layers(Layers(static=given)), self.clock.monotonic, self.metrics, parts)
        self.changes = 0
        self.quotas.watchers.append(self._changed)

    def _changed(self):
        self.changes += 1

    def set(self, *quotas):
        rules = [rule_of(entity_of(parts), values) for parts, values in quotas]
        self.quotas.take({rule.id: rule for rule in rules})


@pytest.mark.parametrize("first", range(len(LEVELS)))
def test_the_first_entity_that_fits_counts(first):
    quotas = {entity_of(parts): {PRODUCE: number + 1.0} for number, (parts, _) in enumerate(LEVELS) if number >= first}
    table = QuotaTable(quotas, {}, 1)
    assert table.of_client(PRODUCE, "ann", "app") == Limit(first + 1.0, LEVELS[first][1])
    assert table.of_client(FETCH, "ann", "app") is None


def test_who_fits_nothing_has_no_limit():
    table = QuotaTable({entity_of({USER: "bob"}): {PRODUCE: 1.0}}, {}, 1)
    assert table.of_client(PRODUCE, "ann", "app") is None
    assert "bob" in repr(table)


def test_each_of_several_brokers_allows_its_part():
    world = World(parts=4)
    world.set(({USER: "ann"}, {PRODUCE: 100.0}))
    assert world.quotas.most_at_once(PRODUCE, "ann", "") == 250.0
    assert world.quotas.most_at_once(PRODUCE, "bob", "") == math.inf


def test_a_default_of_the_settings_is_the_last_to_count():
    world = World(quota_producer_default="1000")
    assert world.quotas.has(PRODUCE)
    assert not world.quotas.has(FETCH)
    assert world.quotas.charge(PRODUCE, "ann", "app", 20_000) == pytest.approx(10.0)
    world.set(({CLIENT_ID: None}, {PRODUCE: 1e9}))
    assert world.quotas.charge(PRODUCE, "ann", "app", 20_000) == 0.0


def test_only_news_is_told():
    world = World()
    world.set(({USER: "ann"}, {PRODUCE: 100.0}))
    world.set(({USER: "ann"}, {PRODUCE: 100.0}))
    assert world.changes == 1
    world.set()
    assert (world.changes, world.quotas.has(PRODUCE)) == (2, False)


def test_who_shares_a_quota_waits_together():
    world = World()
    world.set(({USER: "ann"}, {PRODUCE: 100.0}))
    assert world.quotas.charge(PRODUCE, "ann", "one", 1000) == 0.0
    assert world.quotas.charge(PRODUCE, "ann", "two", 1000) == pytest.approx(10.0)
    assert world.quotas.charge(PRODUCE, "bob", "two", 10**9) == 0.0
    assert "ann" in repr(world.quotas)


def test_what_is_given_back_was_not_used():
    world = World()
    world.set(({USER: "ann"}, {FETCH: 100.0}))
    assert world.quotas.charge(FETCH, "ann", "", 5000) > 0
    world.quotas.give_back(FETCH, "ann", "", 5000)
    world.quotas.give_back(FETCH, "bob", "", 5000)
    assert world.quotas.charge(FETCH, "ann", "", 1000) == 0.0


def test_the_wait_for_time_of_a_thread_is_bounded_by_a_window():
    world = World()
    world.set(({USER: "ann"}, {REQUEST: 1.0}))
    assert world.quotas.charge(REQUEST, "ann", "", 10_000) == 1.0


def test_strict_mutations_are_refused_and_others_wait():
    world = World()
    world.set(({USER: "ann"}, {MUTATION: 1.0}))
    ask = world.quotas.mutate
    assert ask("ann", "", 13, strict=True) == (True, 0.0)
    assert ask("ann", "", 1, strict=True) == (False, pytest.approx(2.0))
    assert ask("ann", "", 1, strict=False) == (True, pytest.approx(3.0))
    assert ask("bob", "", 1000, strict=True) == (True, 0.0)
    world.clock.advance(3_000)
    assert ask("ann", "", 1, strict=True) == (True, 0.0)


def test_connections_of_an_address():
    world = World()
    assert world.quotas.connect("10.0.0.1") == 0.0
    world.set(({IP: None}, {CONNECTION: 2.0}), ({IP: "10.0.0.9"}, {CONNECTION: 1e6}))
    assert [world.quotas.connect("10.0.0.1") for _ in range(20)] == [0.0] * 20
    assert 0 < world.quotas.connect("10.0.0.1") <= 1.0
    assert world.quotas.connect("10.0.0.2") == 0.0
    assert [world.quotas.connect("10.0.0.9") for _ in range(30)] == [0.0] * 30
    assert sum(world.metrics.histogram(THROTTLE_SECONDS, CONNECTION).counts) == 1


@pytest.mark.parametrize(
    ("told", "came"), [("0:0:0:0:0:0:0:1", "::1"), ("2001:DB8::1", "2001:db8::1"), ("10.0.0.1", "::ffff:10.0.0.1")]
)
def test_an_address_may_be_written_in_several_ways(told, came):
    world = World()
    world.set(({IP: told}, {CONNECTION: 0.1}))
    assert world.quotas.connect(came) == 0.0
    assert world.quotas.connect(came) > 0.0


def test_those_that_are_gone_are_forgotten():
    world = World()
    world.set(({CLIENT_ID: None}, {PRODUCE: 100.0, MUTATION: 1.0}))
    for number in range(50):
        world.quotas.charge(PRODUCE, "", f"client-{number}", 1)
        world.quotas.mutate("", f"client-{number}", 1, strict=True)
    assert repr(world.quotas).endswith(" 100 who used them>")
    world.clock.advance(20_000)
    world.quotas.charge(PRODUCE, "", "new", 1)
    world.quotas.mutate("", "new", 1, strict=True)
    assert repr(world.quotas).endswith(" 2 who used them>")


class TestHolding:
    """Who was told to wait is held on every connection, also on one that is opened meanwhile."""

    @pytest.fixture
    def world(self):
        world = World()
        world.set(({USER: "ann"}, {PRODUCE: 100.0}), ({USER: "bob"}, {FETCH: 100.0}))
        return world

    def test_all_who_share_the_quota_are_held_until_the_wait_is_over(self, world):
        assert world.quotas.held_s(PRODUCE, "ann", "one") == 0.0
        world.quotas.hold(PRODUCE, "ann", "one", 3.0)
        assert world.quotas.held_s(PRODUCE, "ann", "two") == pytest.approx(3.0)
        world.clock.advance(2_000)
        assert world.quotas.held_s(PRODUCE, "ann", "two") == pytest.approx(1.0, abs=0.01)
        world.clock.advance(1_000)
        assert world.quotas.held_s(PRODUCE, "ann", "two") == 0.0

    def test_others_are_not(self, world):
        world.quotas.hold(PRODUCE, "ann", "", 3.0)
        world.quotas.hold(PRODUCE, "bob", "", 3.0)  # no quota counts what bob produces
        assert world.quotas.held_s(PRODUCE, "bob", "") == 0.0
        assert world.quotas.held_s(FETCH, "bob", "") == 0.0
        assert world.quotas.held_s(FETCH, "ann", "") == 0.0

    def test_a_shorter_wait_ends_no_longer_one(self, world):
        for wait_s in (3.0, 1.0):
            world.quotas.hold(PRODUCE, "ann", "", wait_s)
        assert world.quotas.held_s(PRODUCE, "ann", "") == pytest.approx(3.0)

    def test_requests_that_are_held_come_one_after_the_other(self, world):
        world.quotas.hold(PRODUCE, "ann", "", 3.0)
        waits = [world.quotas.held_s(PRODUCE, "ann", "") for _ in range(100)]
        assert all(one < other for one, other in itertools.pairwise(waits))
        assert waits[-1] < 3.1

    def test_other_quotas_hold_nobody_for_what_was_used_of_the_former(self, world):
        world.quotas.hold(PRODUCE, "ann", "", 3.0)
        world.set(({USER: "ann"}, {PRODUCE: 1e9}))
        assert world.quotas.held_s(PRODUCE, "ann", "") == 0.0

    def test_waits_that_are_over_are_forgotten(self, world):
        world.set(({CLIENT_ID: None}, {PRODUCE: 100.0}))
        for number in range(50):
            world.quotas.hold(PRODUCE, "", f"client-{number}", 3.0)
        world.clock.advance(4_000)
        world.quotas.hold(PRODUCE, "", "new", 3.0)
        assert [client for (_, (_, client)) in world.quotas._holds] == ["new"]
