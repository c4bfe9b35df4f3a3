"""Users that are changed at one worker count at the others, and outlive all of them."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient

from horolog import Admin
from horolog.broker.security.sasl import scram_keys
from horolog.broker.security.sasl.scram_keys import SCRAM_SHA_512
from horolog.client.admin.admin_users import NewUser
from tests.interop.test_sasl import lists_topics
from tests.support.sasl_brokers import horolog

NAME = "SCRAM-SHA-512"


def logs_in(address: str, password: str) -> bool:
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": NAME, "sasl.username": "ann"}
    said: list[str] = []
    told = {"error_cb": lambda error: said.append(error.name()), "log_level": 0}
    client = AdminClient({"bootstrap.servers": address, **login, "sasl.password": password, **told})
    came_in = lists_topics(client, lambda: "_AUTHENTICATION" in said)
    assert came_in or "_AUTHENTICATION" in said, said
    return came_in and len(client.list_topics(timeout=60).brokers) == 2


async def ports_of(address: str) -> list[str]:
    async with Admin(address) as admin:
        nodes = (await admin.describe_cluster()).nodes
    return [f"{node.host}:{node.port}" for node in nodes]


def user(password: str) -> NewUser:
    salt = scram_keys.new_salt()
    return NewUser("ann", NAME, 4096, salt, SCRAM_SHA_512.salted(password, salt, 4096))


async def test_a_user_changed_at_one_worker_counts_at_the_other(tmp_path) -> None:
    more = {"horolog.workers": "2", "horolog.worker.ports": "PLAINTEXT:0,SASL_PLAINTEXT:0"}
    with horolog(tmp_path / "data", **more) as (door, broker):
        first, second = await ports_of(door.open)
        async with Admin(first) as admin:
            await admin.put_users([user("one")])
        async with Admin(second) as admin:
            assert await admin.describe_users() == {"ann": {NAME: 4096}}
        assert all(logs_in(door.closed, "one") for _ in range(4))  # whichever worker answers at the shared port
        async with Admin(second) as admin:
            await admin.put_users([user("two")])
        assert not any(logs_in(door.closed, "one") for _ in range(2))
        assert all(logs_in(door.closed, "two") for _ in range(4))
        broker.stop()
        broker.start()
        assert logs_in(door.closed, "two")
        async with Admin(door.open) as admin:
            await admin.remove_users({"ann": NAME})
        assert not any(logs_in(door.closed, "two") for _ in range(2))
