"""Racks over a real S3 server, with logins, ACLs and quotas: the broker of the reader's rack checks them as the leader does."""

from contextlib import ExitStack

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

import confluent_kafka
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from horolog.client.cli.main import main
from tests.stores.test_racks import COUNT, SELECTOR, figure, fill, offsets, ports_of_http
from tests.stores.test_three_brokers import NODES, QUIET, WITHIN_S, Cluster
from tests.support import s3_server
from tests.support.guarded_broker import STANDARD_AUTHORIZER
from tests.support.sasl_brokers import LISTENER, MODULES
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

BYTES_A_SECOND = 500_000
"""The quota counts over eleven seconds, so that half of the records come at once."""


def settings(plain, asking, http):
    """Clients without a login are super users, on a listener of their own."""
    return (
        SELECTOR,
        "broker.rack=rack-NODE",
        "log.segment.bytes=1048576",
        f"horolog.http.listen=127.0.0.1:NODE{http:04}",
        f"listeners=PLAINTEXT://127.0.0.1:NODE{plain:04},SASL_PLAINTEXT://127.0.0.1:NODE{asking:04}",
        "sasl.enabled.mechanisms=PLAIN",
        f'{LISTENER}plain.sasl.jaas.config={MODULES}.plain.PlainLoginModule required user_alice="secret" ;',
        f"authorizer.class.name={STANDARD_AUTHORIZER}",
        "super.users=User:ANONYMOUS",
    )


def may_read(name, kind):
    return AclBinding(
        kind,
        name,
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )


def test_a_reader_in_another_rack_is_bound_by_its_acls_and_its_quota(s3_folder, monkeypatch):
    plain, asking, http = (ports_of_http() for _ in range(3))
    with s3_server.running(s3_folder / "s3") as server, ExitStack() as stack:
        server.enter(monkeypatch)
        cluster = Cluster(s3_folder, *settings(plain, asking, http), url="s3://lake/cluster")
        stack.callback(cluster.end)
        for node in NODES:
            cluster.start(node)
        servers = ",".join(f"127.0.0.1:{node}{plain:04}" for node in NODES)
        admin = AdminClient({"bootstrap.servers": servers, **QUIET})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(WITHIN_S)
        leader = cluster.leaders(admin)[0]
        reader = next(node for node in NODES if node != leader)
        fill(servers)
        wait_until(lambda: figure(leader * 10_000 + http, "store_uploaded_segments_total") >= 10)
        rules = may_read("t", ResourceType.TOPIC), may_read("g", ResourceType.GROUP)
        for created in admin.create_acls(list(rules)).values():
            created.result(WITHIN_S)
        limit = ["quotas", "set", "--user", "alice", f"consumer_byte_rate={BYTES_A_SECOND}"]
        assert main([*limit, "--bootstrap", servers]) == 0

        throttled = set()
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers.replace(f"{plain:04}", f"{asking:04}"),
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "alice",
                "sasl.password": "secret",
                "group.id": "g",
                "client.rack": f"rack-{reader}",
                "fetch.message.max.bytes": 200_000,
                "queued.max.messages.kbytes": 500,
                "throttle_cb": lambda event: throttled.add(event.broker_id),
                **QUIET,
            }
        )
        stack.callback(consumer.close)
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        found = offsets(consumer, COUNT * 3 // 4)
        assert found == list(range(len(found)))
        assert figure(reader * 10_000 + http, "store_followed_bytes_total") >= 6 * 2**20
        assert reader in throttled

        gone = AclBindingFilter(
            ResourceType.TOPIC,
            "t",
            ResourcePatternType.LITERAL,
            "User:alice",
            None,
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        admin.delete_acls([gone])[gone].result(WITHIN_S)

        def is_refused():
            error = next((one.error() for one in consumer.consume(100, 0.5) if one.error() is not None), None)
            return error is not None and error.code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED

        wait_until(is_refused)
