"""Access lists beside a real Kafka: whoever asks, and whatever he may, each API and version gives the same codes to the same parts.

Kafka's own `kafka-acls` makes, lists and removes rules of a broker process.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks import kafka
from horolog.broker.handlers import HANDLERS
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.acls import AclCreation, CreateAclsRequest, DescribeAclsRequest
from horolog.protocol.messages.api_versions import ApiVersionsRequest
from horolog.protocol.messages.groups import FindCoordinatorRequest
from horolog.protocol.messages.metadata import MetadataRequest
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from horolog.protocol.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from horolog.protocol.messages.transactions import InitProducerIdRequest
from tests.support.every_request import BUILDERS, OPEN, SECRET, UNKNOWN_ID, World, request_of, told
from tests.support.guarded_kafka import Addresses, guarded_kafka, guarded_process, wire_of
from tests.support.raw_wire import RawWire

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(400)]

RELEASE = "4.3.1"
ANY, TOPIC, GROUP, CLUSTER, TRANSACTION = 1, 2, 3, 4, 5
LITERAL, PREFIXED, DENY, ALLOW = 3, 4, 2, 3
OPERATIONS = {
    "all": 2,
    "read": 3,
    "write": 4,
    "create": 5,
    "delete": 6,
    "alter": 7,
    "describe": 8,
    "cluster_action": 9,
    "describe_configs": 10,
    "alter_configs": 11,
    "idempotent_write": 12,
}
ANYWHERE = (TOPIC, GROUP, TRANSACTION)
OF_GROUPS, OF_TRANSACTIONS = 0, 1
ABOUT_TRANSACTIONS = {
    *(ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN),
    *(ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS),
}
"""Asked of their coordinator; that of all groups leads all topics, and is asked about everything else."""

Rule = tuple[int, str, int, int, int]

USERS: dict[str, list[Rule]] = {
    "nobody": [],
    **{name: [(kind, OPEN, LITERAL, number, ALLOW) for kind in ANYWHERE] for name, number in OPERATIONS.items()},
    **{f"cluster_{name}": [(CLUSTER, "kafka-cluster", LITERAL, number, ALLOW)] for name, number in OPERATIONS.items()},
    "anything": [
        *((kind, "*", LITERAL, OPERATIONS["all"], ALLOW) for kind in ANYWHERE),
        (CLUSTER, "kafka-cluster", LITERAL, OPERATIONS["all"], ALLOW),
    ],
    "everything_but": [
        *((kind, "*", LITERAL, OPERATIONS["all"], ALLOW) for kind in ANYWHERE),
        *((kind, "sec", PREFIXED, OPERATIONS["all"], DENY) for kind in ANYWHERE),
    ],
    "reader": [
        (TOPIC, "*", LITERAL, OPERATIONS["read"], ALLOW),
        (TOPIC, SECRET, LITERAL, OPERATIONS["read"], DENY),
        (GROUP, "o", PREFIXED, OPERATIONS["read"], ALLOW),
    ],
    "producer": [
        (TRANSACTION, "*", LITERAL, OPERATIONS["write"], ALLOW),
        (TOPIC, OPEN, LITERAL, OPERATIONS["write"], ALLOW),
        (GROUP, "*", LITERAL, OPERATIONS["read"], ALLOW),
    ],
}
"""By principal: resource type, name, pattern, operation, permission of each rule."""

OLD_PRODUCE = 3
"""Kafka 4 advertises older versions of Produce and closes the connection on them."""

DECIDED = {
    *(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    *(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    *(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.OPERATION_NOT_ATTEMPTED),
}
"""The codes that access lists decide about; whatever else an answer says is a matter of the handlers' own tests."""

EVERY_RULE = DescribeAclsRequest(resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY)
"""Kafka's broker learns the rules from its controller, a while after they were accepted."""

DENIED = f"error_code={ErrorCode.TOPIC_AUTHORIZATION_FAILED:d}"

Said = dict[tuple[str, str, int], list[tuple[str, ...]]]


def patiently(ask: Callable[[], Any], is_done: Callable[[Any], bool]) -> Any:
    """Coordinators take a while."""
    for _ in range(600):
        answer = ask()
        if is_done(answer):
            return answer
        time.sleep(0.1)
    raise AssertionError(answer)


class Place(NamedTuple):
    """The broker that coordinates; with several workers it may be any of them."""

    node: int
    address: str


def coordinator(address: str, kind: int) -> Place:
    """Of all groups or all transactions: their topics have one partition."""
    find = FindCoordinatorRequest(key_type=kind, coordinator_keys=[OPEN])
    with wire_of(address, "admin") as wire:
        answer = patiently(lambda: wire.ask(find, 4), lambda one: not one.coordinators[0].error_code)
    (found,) = answer.coordinators
    return Place(found.node_id, f"{found.host}:{found.port}")


def prepared(of_groups: Place, of_transactions: Place) -> dict[str, bytes]:
    """Topics, groups, transactional ids and rules; the ids of the topics."""
    made = [OPEN, SECRET, "kept", *(f"{SECRET}-{user}{version}" for user in USERS for version in range(7))]
    led_there = [CreatableReplicaAssignment(partition_index=0, broker_ids=[of_groups.node])]
    topics = [
        CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=led_there) for name in made
    ]
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    committed = [OffsetCommitRequestTopic(name=name, partitions=[place]) for name in (OPEN, SECRET)]
    with wire_of(of_groups.address, "admin") as wire:
        wire.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 5)
        everything = patiently(
            lambda: wire.ask(MetadataRequest(topics=None), 12),
            lambda one: set(made) <= {each.name for each in one.topics},
        )
        assert not any(one.error_code for one in wire.ask(CreateAclsRequest(creations=rules()), 2).results)
        patiently(
            lambda: wire.ask(EVERY_RULE, 2), lambda one: sum(len(each.acls) for each in one.resources) >= len(rules())
        )
        for name in (OPEN, SECRET):
            commit = OffsetCommitRequest(group_id=name, topics=committed)
            patiently(
                lambda: wire.ask(commit, 5),  # noqa: B023
                lambda one: not any(each.partitions[0].error_code for each in one.topics),
            )
    with wire_of(of_transactions.address, "admin") as wire:
        for name in (OPEN, SECRET):
            begin = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=10_000)
            patiently(lambda: wire.ask(begin, 4), lambda one: not one.error_code)  # noqa: B023
    return {each.name: each.topic_id for each in everything.topics}


def rules() -> list[AclCreation]:
    return [
        AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=pattern,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=permission,
        )
        for user, rules in USERS.items()
        for kind, name, pattern, operation, permission in rules
    ]


def asked(address: str, served: dict[ApiKey, range]) -> Said:
    """What everybody is told about everything."""
    of_groups, of_transactions = coordinator(address, OF_GROUPS), coordinator(address, OF_TRANSACTIONS)
    ids = prepared(of_groups, of_transactions)
    names = {topic_id: name for name, topic_id in ids.items()} | {UNKNOWN_ID: "unknown"}
    said: Said = {}
    for user in USERS:
        world = World(ids, user, of_groups.node)
        with wire_of(of_groups.address, user) as others, wire_of(of_transactions.address, user) as transactional:
            for key in BUILDERS:
                wire = transactional if key in ABOUT_TRANSACTIONS else others
                for version in served.get(key, ()):
                    answer = wire.ask(request_of(key, world, version), version)
                    said[user, key.name, version] = [decided(row) for row in told(answer, names)]
    return said


def decided(row: tuple[str, ...]) -> tuple[str, ...]:
    """A row with the codes that are of interest here."""

    def shown(word: str) -> str:
        found = re.fullmatch(r"(\w*error_code)=(-?\d+)", word)
        return word if found is None or int(found[2]) in DECIDED else f"{found[1]}: other"

    return tuple(map(shown, row))


def both_serve(address: str) -> dict[ApiKey, range]:
    with RawWire(address) as wire:
        versions = wire.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    theirs = {one.api_key: one for one in versions.api_keys}
    return {
        key: range(
            max(theirs[key].min_version, ours.min_version, OLD_PRODUCE if key is ApiKey.PRODUCE else 0),
            min(theirs[key].max_version, ours.max_version) + 1,
        )
        for key, ours in HANDLERS.items()
        if key in theirs
    }


def different(key: str, theirs: list[tuple[str, ...]], ours: list[tuple[str, ...]]) -> bool:
    """Whether an access list was read in another way; some rows are about something else."""
    if key == "CREATE_TOPICS":  # each has settings of its own
        theirs, ours = ([row for row in rows if "error_code" in row[-1]] for rows in (theirs, ours))
    if key in {"LIST_CONFIG_RESOURCES", "DESCRIBE_QUORUM"}:  # what else there is
        theirs, ours = ([row for row in rows if "error_code" in row[0]] for rows in (theirs, ours))
    if key in {"SHARE_FETCH", "SHARE_ACKNOWLEDGE"}:  # whether a partition is open already
        theirs, ours = ([row for row in rows if DENIED in row] for rows in (theirs, ours))
    return sorted(theirs) != sorted(ours)


@pytest.mark.long
@pytest.mark.one_worker("its requests go to one broker, which may coordinate none of the groups")
def test_everybody_is_told_the_same_as_by_kafka(tmp_path: Path) -> None:
    users = ("admin", *USERS)
    try:
        kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    with guarded_kafka(RELEASE, users) as addresses:
        served = both_serve(addresses[0])
        theirs = asked(addresses[1], served)
    with guarded_process(tmp_path / "data", users) as addresses:
        ours = asked(addresses[1], served)
    assert len(theirs) > 150 * len(USERS)
    assert theirs.keys() == ours.keys()
    found = [
        (*question, theirs[question], ours[question])
        for question in theirs
        if different(question[1], theirs[question], ours[question])
    ]
    assert found == []


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Addresses]:
    with guarded_process(tmp_path / "data", ("admin", "alice")) as addresses:
        yield addresses


def kafka_acls(address: str, user: str, folder: Path, *arguments: str) -> str:
    try:
        jars = kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{user}" password="{user}";'
    config = folder / f"{user}.properties"
    config.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")
    java = ["java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{jars}/*"]
    command = [*java, "org.apache.kafka.tools.AclCommand", "--bootstrap-server", address]
    command += ["--command-config", str(config), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def test_kafkas_own_tool_changes_rules(broker: Addresses, tmp_path: Path) -> None:
    _, address = broker
    added = kafka_acls(
        address, "admin", tmp_path, "--add", "--allow-principal", "User:alice", "--producer", "--topic", "orders-",
        "--resource-pattern-type", "prefixed",
    )  # fmt: skip
    assert "(principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW)" in added
    listed = kafka_acls(
        address, "admin", tmp_path, "--list", "--topic", "orders-eu", "--resource-pattern-type", "match"
    )
    assert "patternType=PREFIXED" in listed
    assert all(f"operation={one}, permissionType=ALLOW" in listed for one in ("WRITE", "DESCRIBE", "CREATE"))
    assert "ClusterAuthorizationException" in kafka_acls(address, "alice", tmp_path, "--list")
    with wire_of(address, "alice") as wire:
        made = CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("orders-eu", "others")
            ]
        )
        codes = {one.name: one.error_code for one in wire.ask(made, 5).topics}
        assert codes == {"orders-eu": ErrorCode.NONE, "others": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        kafka_acls(
            address,
            "admin",
            tmp_path,
            "--remove",
            "--force",
            "--topic",
            "orders-",
            "--resource-pattern-type",
            "prefixed",
        )
        assert wire.ask(MetadataRequest(topics=None), 9).topics == []
    assert "PREFIXED" not in kafka_acls(address, "admin", tmp_path, "--list")
