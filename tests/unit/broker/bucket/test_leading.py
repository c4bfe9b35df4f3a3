"""From the entry that makes a broker the leader until clients are served."""

from horolog.broker.bucket.bucket_entries import HandedOver, WalEnded
from horolog.broker.bucket.leading import Leading, waits_for_lease
from horolog.broker.bucket.lease import Lease
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Opening
from horolog.broker.cluster.cluster_state import Lead
from tests.support.simulated_store import Schedule
from tests.unit.broker.bucket.bucket_states import ID, of


class Log:
    """The log's half: opens when it is let."""

    def __init__(self):
        self.opening, self.settling, self.given_up = {}, [], []

    def open_from(self, opening, opened):
        self.opening[opening.place] = lambda: opened("partition")

    def settle_start(self, opening, settled):
        self.settling.append((opening.place, settled))

    def give_up(self, place):
        self.given_up.append(place)

    def remove(self, place):
        self.given_up.append(("removed", place))


class Led:
    def __init__(self):
        self.schedule, self.log, self.served = Schedule(), Log(), []
        lease = Lease(2.0, lambda: self.schedule.now)
        self.leading = Leading(self.log, lease, self.schedule.later, lambda *one: self.served.append(one))


def opening(epoch=0):
    state = of(1, 2)
    (place, *_) = state.led_by(2)
    if epoch:
        state = state.apply(WalEnded(Wal(2, 2), 3, {place: Lead(1, 1)}))
    return state, Opening("t", place[0], place[1], None, state.lineages[place])


def test_a_partition_is_served_once_it_is_open():
    led, (_, new) = Led(), opening()
    led.leading.open(new, waits=False)
    assert (led.served, led.leading.is_opening(new.place)) == ([], True)
    led.log.opening[new.place]()
    assert (led.served, led.leading.is_opening(new.place)) == ([(new, "partition")], False)


def test_it_says_how_long_it_took_until_all_were_served():
    led, (_, new) = Led(), opening()
    done, other = [], new._replace(partition=99)
    led.leading._all_served = lambda *one: done.append(one)
    led.leading.open(new, waits=False)
    led.leading.open(other, waits=False)
    assert led.leading.opening_count == 2
    led.schedule.run(until=1)
    led.log.opening[new.place]()
    assert done == []
    led.log.opening[other.place]()
    assert done == [(2, 1)]
    assert led.leading.opening_count == 0


def test_the_successor_of_a_fenced_broker_loads_and_waits_for_the_end_of_its_lease():
    led, (state, new) = Led(), opening(1)
    assert waits_for_lease(state, new)
    led.leading.open(new, waits=True)
    led.schedule.run(until=1)
    led.log.opening[new.place]()
    led.schedule.run(until=2.1)
    assert led.served == []
    led.schedule.run(until=2.3)
    assert led.served == []
    ((place, settled),) = led.log.settling
    settled()
    assert (place, led.served) == (new.place, [(new, "partition")])


def test_what_another_leads_while_it_waits_for_the_lease_is_not_served():
    led, (_, new) = Led(), opening(1)
    led.leading.open(new, waits=True)
    led.log.opening[new.place]()
    led.leading.close(new.place)
    led.schedule.run(until=3)
    assert (led.served, led.log.settling) == ([], [])


def test_only_a_fenced_broker_may_go_on_answering():
    state = of(1, 2)
    (place, *_) = state.led_by(2)
    assert not waits_for_lease(state, Opening("t", *place, None, state.lineages[place]))
    given = state.apply(HandedOver(Wal(2, 2), 3, {place: Lead(1, 1)}))
    assert not waits_for_lease(given, Opening("t", *place, None, given.lineages[place]))


def test_what_another_leads_meanwhile_is_not_served():
    led, (_, new) = Led(), opening()
    led.leading.open(new, waits=False)
    led.leading.close(new.place)
    led.log.opening[new.place]()
    assert (led.served, led.log.given_up) == ([], [new.place])


def test_an_older_opening_counts_no_more():
    led, (_, old), (_, new) = Led(), opening(), opening(1)
    led.leading.open(old, waits=False)
    late = led.log.opening[old.place]
    led.leading.open(new, waits=False)
    late()
    assert led.served == []
    led.log.opening[new.place]()
    assert led.served == [(new, "partition")]


def test_a_broker_that_stops_opens_nothing_more():
    led, (_, new) = Led(), opening()
    led.leading.open(new, waits=False)
    led.leading.end()
    led.log.opening[new.place]()
    led.log.opening.clear()
    led.leading.open(new, waits=False)
    assert led.log.opening == {}
    assert led.served == []
    assert "0 partitions" in repr(led.leading)
    assert new.topic_id == ID


def test_a_partition_of_a_deleted_topic_is_removed_and_not_served():
    led, (_, new) = Led(), opening()
    led.leading.open(new, waits=False)
    led.leading.remove(new.place)
    led.log.opening[new.place]()
    assert (led.served, led.log.given_up) == ([], [("removed", new.place)])
