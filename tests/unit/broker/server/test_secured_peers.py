"""Three brokers over a store that ask each other over TLS and SASL, as a principal that may act for the cluster; others may not."""

import asyncio
import contextlib

import pytest

from horolog.broker.bucket.tcp_peers import PeerLinks, TcpPeers
from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.security.peer_access import PeerAccess, PeerUser, peer_access
from horolog.broker.security.sasl.scram_keys import SCRAM_SHA_256, of_password
from horolog.broker.security.users import UserId, rule_of
from tests.support.certificates import Certificates
from tests.unit.broker.server.test_over_store import SOON_S, Brokers, free_port, until

MODULES = "org.apache.kafka.common.security"
LISTENER = "listener.name.inside."
PLAIN = f'{MODULES}.plain.PlainLoginModule required username="broker" password="b" user_broker="b" user_alice="a";'
SCRAM = f'{MODULES}.scram.ScramLoginModule required username="broker" password="b";'
ACCESS_LISTS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "false",
}


class SecuredBrokers(Brokers):
    """Each has a listener for clients and one for brokers."""

    def __init__(self, folder, certificates, more):
        super().__init__(folder)
        self.given = {
            "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,INSIDE:SASL_SSL",
            "inter.broker.listener.name": "INSIDE",
            **{key: value for key, value in certificates.settings().items() if key.startswith("ssl.")},
            **ACCESS_LISTS,
            "super.users": "User:broker",
            **more,
        }

    def settings(self, node):
        listeners = f"OUTSIDE://127.0.0.1:{free_port()},INSIDE://127.0.0.1:{free_port()}"
        static = {"node.id": str(node), "listeners": listeners, "log.dirs": f"{self.folder}/{node}"}
        return from_layers(Layers(static=static | self.given))


@contextlib.asynccontextmanager
async def three(folder, more):
    made = SecuredBrokers(folder / "data", Certificates(folder), more)
    try:
        for node in (1, 2, 3):
            await made.start(node)
        yield made
    finally:
        for node in list(made.running):
            await made.stop(node)
        for one in made.requests:
            one.close()


async def answers(made, access, node=2):
    """Whether a broker answers one that enters like this."""
    over, broker = made.running[node]
    inside = next(one for one in broker.listeners if one.name == access.listener)
    peers = TcpPeers(lambda _: ("127.0.0.1", inside.port), asyncio.get_running_loop(), access)
    answered = asyncio.get_running_loop().create_future()
    PeerLinks(peers, lambda _: over.wal).ping(node, 0, answered.set_result)
    async with asyncio.timeout(SOON_S):
        pong = await answered
    peers.close()
    return pong is not None


def hear_each_other(made):
    return all(one.has_answered for over, _ in made.running.values() for one in over._watch._detection._others.values())


async def test_brokers_log_in_by_plain_over_tls_and_clients_may_not_speak_as_brokers(tmp_path):
    more = {
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        f"{LISTENER}sasl.enabled.mechanisms": "PLAIN",
        f"{LISTENER}plain.sasl.jaas.config": PLAIN,
    }
    async with three(tmp_path, more) as made:
        await until(lambda: hear_each_other(made))
        await made.create(6)
        assert set(made.served().values()) == {1, 2, 3}
        assert made[1].state.suspicions == {}
        access = peer_access(made.settings(9))
        assert await answers(made, access)
        assert not await answers(made, PeerAccess("INSIDE", access.tls, PeerUser("PLAIN", "alice", "a")))
        assert not await answers(made, PeerAccess("INSIDE", access.tls, PeerUser("PLAIN", "broker", "wrong")))
        assert not await answers(made, PeerAccess("INSIDE", access.tls))
        assert not await answers(made, PeerAccess("OUTSIDE"))  # anonymous there
        await made.stop(3)
        await until(lambda: set(made.served().values()) == {1, 2} and len(made.served()) == 6)


async def test_brokers_log_in_by_scram_as_a_user_of_the_cluster(tmp_path):
    more = {
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        f"{LISTENER}sasl.enabled.mechanisms": "SCRAM-SHA-256",
        f"{LISTENER}scram-sha-256.sasl.jaas.config": SCRAM,
    }
    made = SecuredBrokers(tmp_path / "data", Certificates(tmp_path), more)
    try:
        await made.start(1)
        rule = rule_of(UserId(SCRAM_SHA_256, "broker"), of_password(SCRAM_SHA_256, "b"))
        made[1].change_rules(lambda rules: RulesChanged((rule,)), lambda error: None)
        await until(lambda: made[1].state.rules)
        await made.start(2)
        await until(lambda: hear_each_other(made))
    finally:
        for node in list(made.running):
            await made.stop(node)
        for one in made.requests:
            one.close()


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_brokers_know_each_other_by_their_certificates(tmp_path, is_trusted):
    """Mutual TLS: the name in the certificate is the principal."""
    more = {
        "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,INSIDE:SSL",
        f"{LISTENER}ssl.client.auth": "required",
        f"{LISTENER}ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
    }
    async with three(tmp_path, more) as made:
        await until(lambda: hear_each_other(made))
        (tmp_path / "other").mkdir()
        certificates = Certificates(tmp_path / "other")
        settings = made.settings(9)
        if not is_trusted:
            made.given |= {
                "ssl.keystore.location": str(certificates.server),
                "ssl.truststore.location": str(certificates.ca),
            }
            settings = made.settings(9)
        assert await answers(made, peer_access(settings)) is is_trusted
