"""Quotas by raw requests, one after the other, to horolog and to a real Kafka: both answer the same, and slow whoever is over one."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import pytest

from benchmarks import kafka
from horolog.protocol.messages.api_versions import ApiVersionsRequest
from horolog.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    OpData,
)
from horolog.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique
from tests.support.raw_wire import RawWire

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]

RELEASE = "4.3.1"
IN_FORCE_S = 1.0
"""After so long a change counts on a Kafka, too."""
BUSY_S = 3.0
"""By so much the waits may differ where one of the two had to wait for the processor."""
HERE = "127.0.0.1"
Parts = Mapping[str, str | None]
Ask = Callable[[RawWire], object]


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Of horolog, and of Kafka."""
    folder = tmp_path_factory.mktemp("quotas")
    ours = BrokerProcess(folder / "ours").start()
    try:
        with kafka.running(RELEASE, data=folder / "theirs") as node:
            yield ours.address, node.address
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    finally:
        assert ours.stop() == 0
        assert "Traceback" not in ours.log()


def entry(parts: Parts, *values: tuple[str, float | None]) -> AlterClientQuotasRequestEntryData:
    entity = [AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name) for kind, name in parts.items()]
    ops = [OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values]
    return AlterClientQuotasRequestEntryData(entity=entity, ops=ops)


def alter(*entries: AlterClientQuotasRequestEntryData, only_look: bool = False) -> Ask:
    def ask(wire: RawWire) -> object:
        answer = wire.ask(AlterClientQuotasRequest(entries=list(entries), validate_only=only_look), 1)
        time.sleep(IN_FORCE_S if not only_look else 0)
        return sorted(
            (
                sorted((part.entity_type, part.entity_name or "<>") for part in one.entity),
                one.error_code,
                one.error_message,
            )
            for one in answer.entries
        )

    return ask


def describe(*components: tuple[str, int, str | None], strict: bool = False) -> Ask:
    def ask(wire: RawWire) -> object:
        filters = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
        answer = wire.ask(DescribeClientQuotasRequest(components=filters, strict=strict), 1)
        if answer.entries is None:
            return answer.error_code
        return (
            answer.error_code,
            answer.error_message,
            sorted(
                (
                    sorted((part.entity_type, part.entity_name or "<>") for part in one.entity),
                    sorted((value.key, value.value) for value in one.values),
                )
                for one in answer.entries
            ),
        )

    return ask


ANY, DEFAULT, EXACT = 2, 1, 0
P, C, R, M, N = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
STEPS: dict[str, Ask] = {
    "every level": alter(
        entry({"user": "ann", "client-id": "app"}, (P, 1000.0), (C, 2000.0)),
        entry({"user": "ann", "client-id": None}, (R, 12.5)),
        entry({"user": "ann"}, (M, 0.5)),
        entry({"user": None, "client-id": "app"}, (P, 1.0)),
        entry({"user": None, "client-id": None}, (P, 2.0)),
        entry({"user": None}, (P, 3.0)),
        entry({"client-id": "app"}, (P, 4.0)),
        entry({"client-id": None}, (P, 5.0)),
        entry({"ip": "10.1.2.3"}, (N, 7.0)),
        entry({"ip": None}, (N, 1000.0)),
    ),
    "all": describe(),
    "strictly nobody": describe(strict=True),
    "users": describe(("user", ANY, None)),
    "users alone": describe(("user", ANY, None), strict=True),
    "default users": describe(("user", DEFAULT, None)),
    "ann": describe(("user", EXACT, "ann")),
    "ann alone": describe(("user", EXACT, "ann"), strict=True),
    "ann's app": describe(("user", EXACT, "ann"), ("client-id", EXACT, "app")),
    "any app of any user": describe(("user", ANY, None), ("client-id", ANY, None), strict=True),
    "addresses": describe(("ip", ANY, None)),
    "an address": describe(("ip", EXACT, "10.1.2.3")),
    "nobody": describe(("user", EXACT, "bob")),
    "an unknown kind": describe(("group", ANY, None)),
    "a kind twice": describe(("user", ANY, None), ("user", EXACT, "ann")),
    "addresses and users": describe(("ip", ANY, None), ("user", ANY, None)),
    "an unknown match": describe(("user", 3, None)),
    "no kind": describe(("", ANY, None)),
    "some are refused": alter(
        entry({"user": "bob"}, (P, 0.0)),
        entry({"user": "carl"}, (P, -1.0)),
        entry({"user": "dora"}, (P, 1.5)),
        entry({"user": "eve"}, (P, 1e19)),
        entry({"user": "fay"}, (N, 1.0)),
        entry({"user": "gus"}, ("something", 1.0)),
        entry({"user": "hal"}, (R, 0.25)),
        entry({"user": "ida"}, ("something", None)),
        entry({"group": "g"}, (P, 1.0)),
        entry({"ip": "10.0.0.1"}, (P, 1.0)),
        entry({"ip": "10.0.0.2"}, (N, 1.5)),
        entry({"ip": "10.0.0.3"}, (N, 1e10)),
        entry({"ip": "10.0.0.4", "user": "x"}, (N, 1.0)),
        entry({"ip": "999.1.1.1.1"}, (N, 1.0)),
        entry({"user": ""}, (P, 1.0)),
    ),
    "an empty entity": alter(entry({}, (P, 1.0))),
    "nothing": alter(),
    "those that were not": describe(("user", ANY, None)),
    "only looked at": alter(entry({"user": "new"}, (P, 1.0)), entry({"user": "ann"}, (P, -1.0)), only_look=True),
    "a value twice": alter(entry({"user": "twice"}, (P, 1.0), (P, 2.0))),
    "changed and removed": alter(
        entry({"user": "ann", "client-id": "app"}, (P, None), (C, 3000.0)),
        entry({"user": "ann"}, (M, None), (P, None)),
        entry({"user": "never"}, (P, None)),
    ),
    "the rest": describe(),
    "gone": alter(
        entry({"user": "ann", "client-id": "app"}, (C, None)),
        entry({"user": "ann", "client-id": None}, (R, None)),
        entry({"user": None, "client-id": "app"}, (P, None)),
        entry({"user": None, "client-id": None}, (P, None)),
        entry({"user": None}, (P, None)),
        entry({"client-id": "app"}, (P, None)),
        entry({"client-id": None}, (P, None)),
        entry({"user": "hal"}, (R, None)),
        entry({"user": "twice"}, (P, None)),
        entry({"ip": "10.1.2.3"}, (N, None)),
        entry({"ip": None}, (N, None)),
    ),
    "nothing is left": describe(),
}


@pytest.mark.long
def test_the_answers_are_the_same(addresses: tuple[str, str]) -> None:
    with RawWire(addresses[0]) as ours, RawWire(addresses[1]) as theirs:
        differing = {}
        for name, ask in STEPS.items():
            both = ask(ours), ask(theirs)
            if both[0] != both[1]:
                differing[name] = both
    assert not differing


def mutations(address: str) -> Iterator[tuple[int, float]]:
    """The code of one change after the other, and for how many seconds it makes wait: nothing is read meanwhile.

    Another connection waits as long: horolog serves its request after that time, Kafka answers at once and names the time.
    """
    large, small = unique("large"), unique("small")
    topic = CreatableTopic(name=large, num_partitions=34, replication_factor=1)
    other = CreatableTopic(name=small, num_partitions=1, replication_factor=1)
    with RawWire(address) as wire:
        for one in (topic, other):
            answer = wire.ask(CreateTopicsRequest(topics=[one], timeout_ms=10_000), 7)
            yield answer.topics[0].error_code, answer.throttle_time_ms / 1000
        grown = CreatePartitionsTopic(name=large, count=56, assignments=None)
        answer = wire.ask(CreatePartitionsRequest(topics=[grown], timeout_ms=10_000), 3)
        yield answer.results[0].error_code, answer.throttle_time_ms / 1000
        deleted = DeleteTopicsRequest(topics=[DeleteTopicState(name=large)], timeout_ms=10_000)
        answer = wire.ask(deleted, 6)
        yield answer.responses[0].error_code, answer.throttle_time_ms / 1000
    with RawWire(address) as wire:
        began = time.monotonic()
        answer = wire.ask(CreateTopicsRequest(topics=[other], timeout_ms=10_000), 5)  # older clients know of no refusal
        yield answer.topics[0].error_code, time.monotonic() - began + answer.throttle_time_ms / 1000


@pytest.mark.one_worker("each of two has half of the rate")
def test_changes_of_topics_are_refused_alike(addresses: tuple[str, str]) -> None:
    answers = []
    for address in addresses:
        with RawWire(address) as wire:
            alter(entry({"client-id": "test"}, (M, 2.0)))(wire)
        answers.append(list(mutations(address)))
        with RawWire(address) as wire:
            alter(entry({"client-id": "test"}, (M, None)))(wire)
    ours, theirs = answers
    assert [code for code, _ in ours] == [code for code, _ in theirs] == [0, 89, 0, 89, 0]
    assert [wait_s for _, wait_s in ours] == [pytest.approx(wait_s, abs=BUSY_S) for _, wait_s in theirs]
    assert [wait_s > 1.0 for _, wait_s in ours] == [False, True, False, True, True]


def served(address: str) -> int:
    """Of how many connections, opened at once, the first request is answered."""
    wires = [RawWire(address) for _ in range(30)]
    count = 0
    for wire in wires:
        with wire, suppress(OSError, struct.error):  # nothing comes but the end
            count += wire.ask(ApiVersionsRequest(), 0).error_code == 0
    return count


@pytest.mark.one_worker("each of two has half of the rate, and connections come to them by chance")
def test_connections_of_an_address_are_served_alike(addresses: tuple[str, str]) -> None:
    counts = []
    for address in addresses:
        with RawWire(address) as wire:
            alter(entry({"ip": HERE}, (N, 2.0)))(wire)
            counts.append(served(address))
            alter(entry({"ip": HERE}, (N, None)))(wire)
    assert counts[0] == pytest.approx(counts[1], abs=2)
    assert 15 <= counts[0] < 30
