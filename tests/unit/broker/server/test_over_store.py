"""Brokers over a store in one event loop, over TCP on loopback: they join, serve, hand over, leave, and begin anew when they are fenced."""

import asyncio
import contextlib
import socket
import struct
from functools import partial
from types import SimpleNamespace

import pytest

from horolog.base.clock import SystemClock
from horolog.broker.base.answers import Answer, run
from horolog.broker.base.store_figures import REQUESTS, TAKEOVERS
from horolog.broker.bucket.bucket_entries import WalEnded
from horolog.broker.bucket.names import Wal, key
from horolog.broker.bucket.registration import TwoOfOneNumber
from horolog.broker.bucket.shipped_safety import ShippingLimits
from horolog.broker.bucket.store_clock import StoreClock
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.cluster.placement import Reader
from horolog.broker.commit import committer
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.config.store_settings import RACK_AWARE_SELECTOR
from horolog.broker.handlers import quorum
from horolog.broker.log.storage import RealStorage
from horolog.broker.prefix.findings import is_fault
from horolog.broker.prefix.verifying import verify
from horolog.broker.server import app, over_store
from horolog.broker.server.over_store import OverStore, StoreUse, use_of
from horolog.broker.transfer.moment_store import MARKS_BEFORE_MS
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.quorum import DescribeQuorumRequest, PartitionData, TopicData
from horolog.protocol.messages.transactions import EndTxnRequest
from horolog.stores.memory_store import MemoryStore
from horolog.stores.requests import ThreadedRequests
from tests.support.log_model import NEW, NOW_MS, encode
from tests.support.request_contexts import request_context
from tests.support.waiting import until

SOON_S = 30
OF_STORE = StoreUse(ShippingLimits(5, 1 << 20, 1 << 20), lease_ms=600, peers_timeout_ms=600)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Brokers:
    """Brokers in this event loop, by their numbers."""

    def __init__(self, folder):
        self.folder, self.store, self.running = folder, MemoryStore(SystemClock()), {}
        self.requests, self.racks, self.given = [], {}, {}

    def settings(self, node):
        static = {
            "node.id": str(node),
            "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
            "log.dirs": f"{self.folder}/{node}",
        }
        if node in self.racks:
            static["broker.rack"] = self.racks[node]
            static["replica.selector.class"] = RACK_AWARE_SELECTOR
        return from_layers(Layers(static=static | self.given))

    def new_requests(self):
        self.requests.append(ThreadedRequests(self.store, asyncio.get_running_loop().call_soon_threadsafe, 4))
        return self.requests[-1]

    async def start(self, node, known_dead=None):
        settings, loop = self.settings(node), asyncio.get_running_loop()
        over = OverStore(settings, self.new_requests(), OF_STORE, loop)
        process = await over.register(known_dead)
        broker = app.Broker(settings, SystemClock(), RealStorage(), [f"{self.folder}/{node}"], loop, process)
        over.attach(broker)
        await broker.start()
        self.running[node] = over, broker
        return over, broker

    async def stop(self, node):
        over, broker = self.running.pop(node)
        await over.leave()
        await broker.stop()

    def __getitem__(self, node):
        return self.running[node][1].cluster

    def served(self, name="t"):
        return {
            one.index: node
            for node in self.running
            if name in self[node].topics
            for one in self[node].topics[name].led_here
        }

    async def create(self, partitions=4):
        self[1].create_topics([NewTopic("t", partitions)], lambda results: None)
        await until(lambda: len(self.served()) == partitions)


def brokers(folder, *nodes):
    return running(Brokers(folder), *nodes)


@contextlib.asynccontextmanager
async def running(made, *nodes):
    try:
        for node in nodes:
            await made.start(node)
        yield made
    finally:
        for node in list(made.running):
            await made.stop(node)
        for one in made.requests:
            one.close()


async def test_brokers_are_one_cluster_and_one_that_leaves_gives_all_to_the_others(tmp_path):
    async with brokers(tmp_path, 1, 2) as made:
        await made.create()
        assert set(made.served().values()) == {1, 2}
        over, broker = made.running[1]
        assert "OverStore of 1" in repr(over)
        assert [one.node for one in broker.placement.brokers("PLAINTEXT")] == [1, 2]
        assert broker.placement.brokers("PLAINTEXT")[1].port == made.running[2][1].listeners[0].port
        assert made[1].cluster_id == made[2].cluster_id
        await made.stop(2)
        await until(lambda: set(made.served().values()) == {1} and len(made.served()) == 4)
        assert made[1].nodes == (1,)


async def test_only_a_broker_that_has_left_waits_for_what_it_has_taken(tmp_path, monkeypatch):
    """If the store is away, or the broker is fenced, nothing more becomes safe: to wait for it would only make the stop long."""
    async with brokers(tmp_path, 1, 2) as made:
        await made.create()
        over, broker = made.running.pop(2)
        assert not broker._process.drains()
        merged = []
        over._log_side.merge_rest = lambda within_s, done: (merged.append(within_s), done(None))
        await over.leave()
        assert merged == [over_store.MERGES_WITHIN_S]
        assert broker._process.drains()
        await broker.stop()
        over, broker = made.running.pop(1)
        monkeypatch.setattr(over._handing, "leave", lambda: Answer(lambda done: None))
        leaving = asyncio.ensure_future(over.leave())
        await asyncio.sleep(0)
        leaving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await leaving
        assert over._log_side.writer is None
        broker.cluster.changes.drain = None  # not asked
        await broker.stop()


async def test_coordinators_have_clients_wait_for_the_store_in_bounded_number(tmp_path, monkeypatch):
    async with brokers(tmp_path, 1) as made:
        _, broker = made.running[1]
        end = broker.dispatcher.gate(ApiKey.END_TXN, lambda *_: "handled")
        asked = broker, EndTxnRequest(transactional_id="x"), request_context(4)
        await until(lambda: end(*asked) == "handled")
        monkeypatch.setattr(committer, "MOST_RECORDS", 0)
        await until(lambda: end(*asked).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE)


async def test_a_broker_whose_producers_have_waited_says_for_a_while_who_leads_now(tmp_path, monkeypatch):
    monkeypatch.setattr(over_store, "PARTING_S", 60.0)
    async with brokers(tmp_path, 1, 2) as made:
        await made.create()
        over, broker = made.running.pop(2)
        over._held.has_held = True
        leaving = asyncio.ensure_future(over.leave())
        await until(lambda: over._has_left)
        assert not leaving.done()
        leaving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await leaving
        assert over._log_side.writer is None
        await broker.stop()


async def test_an_idle_broker_asks_the_store_only_as_often_as_its_lease_needs(tmp_path, monkeypatch):
    asked = []
    async with brokers(tmp_path, 1) as made:
        watch, lease_s = made.running[1][0]._watch, OF_STORE.lease_ms / 1000
        requests, get = made.requests[0], made.requests[0].get
        monkeypatch.setattr(requests, "get", lambda key, done: (asked.append(key), get(key, done)))
        began = watch.lease.now()
        await until(lambda: watch.lease.now() - began > 3 * lease_s)
        assert 0 < len(asked) <= (watch.lease.now() - began) / (lease_s / 3) + 2, "three times in each lease"


async def test_what_a_broker_shows_of_its_store(tmp_path, caplog):
    async with brokers(tmp_path, 1, 2) as made:
        with caplog.at_level("INFO"):
            await made.create()
        over, broker = made.running[1]
        found = broker.store_figures()
        assert list(found.reasons()) == []
        assert (found.fault, found.is_member, found.member_count, found.fenced_count) == ("", True, 2, 0)
        assert 0 < found.lease_left_s <= OF_STORE.lease_ms / 1000
        assert found.journal_lag_s < SOON_S
        assert found.dollars_per_day > 0
        assert (found.opening_count, found.unsafe_bytes) == (0, 0)
        ((_, took),) = found.counted.samples(TAKEOVERS)
        assert sum(took.counts) == 1
        assert "serving 2 more partitions" in caplog.text
        assert {labels for labels, _ in found.counted.samples(REQUESTS)} >= {("create", "done"), ("get", "missing")}
        over._log_side.stop(is_fenced=False)
        over.is_fenced = True
        over.report.fenced()
        after = broker.store_figures()
        assert (after.is_member, after.fenced_count, after.unmerged_objects) == (False, 1, 0)


async def test_clients_are_told_the_rack_of_each_broker(tmp_path):
    made = Brokers(tmp_path)
    made.racks = {1: "a", 2: "b"}
    async with running(made, 1, 2):
        placement = made.running[1][1].placement
        await until(lambda: [one.rack for one in placement.brokers("PLAINTEXT")] == ["a", "b"])


async def test_a_broker_of_each_rack_serves_old_records_where_the_setting_says_so(tmp_path):
    made = Brokers(tmp_path)
    made.racks = {1: "a", 2: "b"}
    async with running(made, 1, 2):
        await made.create()
        for node, other in ((1, 2), (2, 1)):
            broker = made.running[node][1]
            await until(lambda of=broker, wanted=other: wanted in of.placement.members.live)
            topic = broker.cluster.topics["t"]
            for index in range(topic.partition_count):
                assert {broker.placement.lead(topic.id, index).node, *broker.placement.readers(topic, index)} == {
                    1,
                    2,
                }
            place, reader = (
                next(index for index in range(4) if topic.find(index) == ErrorCode.NOT_LEADER_OR_FOLLOWER),
                Reader("ab"[node - 1], None, "h"),
            )
            followed = partial(broker.placement.selector.followed, topic, place, 0, reader, committed=False)
            await until(lambda ask=followed: ask() == ErrorCode.NOT_LEADER_OR_FOLLOWER)
            assert broker.store_figures().followed_bytes == 0
    async with brokers(tmp_path / "more", 3) as alone:
        assert alone.running[3][1].placement.selector is None


async def test_each_broker_describes_the_quorum_as_its_leader(tmp_path):
    request = DescribeQuorumRequest(
        topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])]
    )
    async with brokers(tmp_path, 1, 2) as made:
        await until(lambda: made[1].state.number == made[2].state.number)
        for node, other in ((1, 2), (2, 1)):
            await until(lambda of=node, wanted=other: wanted in made.running[of][1].placement.members.live)
            response = quorum.handle(made.running[node][1], request, SimpleNamespace(version=2, listener="PLAINTEXT"))
            ((found,),) = [topic.partitions for topic in response.topics]
            assert (found.leader_id, [one.replica_id for one in found.current_voters]) == (node, [node])
            assert [(one.replica_id, one.log_end_offset) for one in found.observers] == [(other, -1)]
            assert found.high_watermark == made[node].state.number
            assert [one.node_id for one in response.nodes] == [1, 2]


async def test_ages_count_by_the_clock_of_the_store(tmp_path, monkeypatch):
    years_ms = 10 * 365 * 86_400_000
    clock = StoreClock(SystemClock(), -years_ms)
    monkeypatch.setitem(globals(), "OF_STORE", OF_STORE._replace(clock=clock))
    async with brokers(tmp_path, 1) as made:
        over, broker = made.running[1]
        assert broker.upkeep._expiry_clock.wall_ms() < SystemClock().wall_ms() - years_ms / 2
        assert broker.logs.resources.watch.clock is broker.upkeep._expiry_clock
        assert over.report.figures().clock_offset_s == pytest.approx(-years_ms / 1000, abs=60)


async def test_limits_change_while_it_runs(tmp_path):
    async with brokers(tmp_path, 1) as made:
        over, broker = made.running[1]
        for watcher in broker.settings_watchers:
            watcher(broker.settings.with_dynamic({"horolog.store.flush.ms": "7"}, {}))
        assert over._safety._limits().flush_ms == 7


def test_how_a_store_is_used_follows_from_the_settings():
    assert use_of(from_layers(Layers())) == StoreUse()
    given = {"horolog.store.lease.ms": "900", "horolog.peers.timeout.ms": "800", "horolog.store.flush.bytes": "2048"}
    found = use_of(from_layers(Layers(static=given)))
    assert (found.lease_ms, found.peers_timeout_ms, found.shipping.flush_bytes) == (900, 800, 2048)


async def test_a_broker_that_joins_gets_its_share(tmp_path, monkeypatch):
    monkeypatch.setattr(over_store, "BALANCES_EVERY_S", 0.05)
    async with brokers(tmp_path, 1) as made:
        await made.create()
        await made.start(2)
        await until(lambda: sorted(made.served().values()) == [1, 1, 2, 2])


async def test_partitions_stay_if_the_wal_has_ended(tmp_path, caplog):
    async with brokers(tmp_path, 1) as made:
        await made.create(1)
        over, _ = made.running[1]
        over._log_side.ship_all = lambda partitions, done: done(None)
        run(over._give({(made[1].topics["t"].id, 0): made[1].state.leads[made[1].topics["t"].id, 0]}))
        assert "partitions could not be moved to other brokers: the broker is fenced" in caplog.text


async def test_a_second_process_with_the_same_number_is_refused(tmp_path):
    async with brokers(tmp_path, 1) as made:
        with pytest.raises(TwoOfOneNumber):
            await OverStore(made.settings(1), made.new_requests(), OF_STORE, asyncio.get_running_loop()).register()


async def test_a_broker_with_the_address_of_another_says_so(tmp_path, monkeypatch, caplog):
    port = free_port()
    monkeypatch.setattr("tests.unit.broker.server.test_over_store.free_port", lambda: port)
    async with brokers(tmp_path, 1) as made:
        settings, use, loop = made.settings(2), OF_STORE, asyncio.get_running_loop()
        await OverStore(settings, made.new_requests(), use, loop).register()
        assert f"broker 1 advertises 127.0.0.1:{port}, too: " in caplog.text


async def test_a_broker_that_finds_another_with_its_number_ends(tmp_path):
    async with brokers(tmp_path, 1, 2) as made:
        over, _ = made.running[1]
        over._fenced(Wal(1, 99))
        assert over.ended.is_set()
        assert over.is_fenced
        assert over.successor.incarnation == over.wal.incarnation  # the member of that number, as far as it is known


async def test_a_broker_is_fenced_by_an_entry_and_the_next_one_of_its_process_is_a_member(tmp_path):
    async with brokers(tmp_path, 1, 2) as made:
        over, _ = made.running[2]
        made[1].changes.make(lambda state: WalEnded(over.wal, 0, {}), lambda _: None)
        await until(over.ended.is_set)
        assert over.is_fenced
        assert over.successor is None
        await made.stop(2)
        again, _ = await made.start(2, over.wal)
        assert again.wal.incarnation > over.wal.incarnation


async def test_a_cluster_that_the_caller_refuses_is_not_joined(tmp_path):
    async with brokers(tmp_path, 1) as made:
        over = OverStore(made.settings(2), made.new_requests(), OF_STORE, asyncio.get_running_loop())

        def refuse(cluster_id):
            assert cluster_id == made[1].cluster_id
            raise LookupError

        with pytest.raises(LookupError):
            await over.register(check=refuse)
        assert made[1].nodes == (1,)


@pytest.mark.parametrize("fault", [None, ValueError("late")])
def test_steps_that_end_after_the_caller_gave_up_are_no_error(fault):
    async def begin_and_give_up():
        late = asyncio.get_running_loop().create_future()
        errors = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))

        async def steps():
            await Answer(lambda done: late.add_done_callback(lambda _: done(None)))
            if fault is not None:
                raise fault

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(over_store._awaited(steps), 0.01)
        late.set_result(None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return errors

    assert asyncio.run(begin_and_give_up()) == []


def offsets_in(batches):
    """The base offsets of batches that lie one behind the other."""
    position, found = 0, []
    while position < len(batches):
        offset, length = struct.unpack_from(">qi", batches, position)
        found.append(offset)
        position += 12 + length
    return found


async def test_objects_that_a_lifecycle_rule_deletes_are_named_and_no_other_record_is_lost(tmp_path, caplog):
    async with brokers(tmp_path, 1, 2) as made:
        await made.create(partitions=2)
        over, _ = made.running[1]
        (partition,) = made[1].topics["t"].led_here
        for number in range(3):
            safe = asyncio.Event()
            partition.append(encode(2, 0, [NOW_MS + number], [b"v"]), NOW_MS, produce_version=NEW)
            partition.flush()
            over._safety.make_safe([partition], lambda _, event=safe: event.set())
            await asyncio.wait_for(safe.wait(), 30)
        name = key(over.wal.folder, 1)
        await until(lambda: partition.high_watermark == 3)
        made.store.delete(name)  # behind the brokers
        await made.stop(1)
        await until(lambda: made.served() == {0: 2, 1: 2})
        taken = next(one for one in made[2].topics["t"].led_here if one.index == partition.index)
        assert (taken.log_start_offset, taken.high_watermark) == (0, 3)
        assert offsets_in(taken.read(0, 1 << 20)) == [0, 2]
        assert sum(name in line and "is lost" in line for line in caplog.messages) == 1
        assert made.running[2][1].store_figures().given_up_objects == 1
        found = await asyncio.to_thread(verify, made.store)
        assert [(one.kind.value, one.name) for one in found.findings if is_fault(one)] == [
            ("missing", name),
            ("missing", f"t-{partition.index}"),
        ]


def test_objects_stay_some_minutes_longer_than_a_restore_goes_back():
    assert over_store.kept_ms(0) == 0
    assert over_store.kept_ms(60_000) > 60_000 + MARKS_BEFORE_MS
