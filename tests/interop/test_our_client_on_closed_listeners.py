"""The bundled client against horolog's own listeners: TLS, each mechanism, both, certificates of clients, logins that end."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from horolog import Admin, Client, Consumer, Producer, Security
from horolog.client.values.errors import AuthenticationFailed, KafkaError, TlsFailed
from horolog.client.wire.retry import RetryPolicy
from horolog.testing import EmbeddedBroker, horolog_broker
from tests.support.authority import Authority
from tests.support.secured_kafka import add_scram_users, login

PASSWORD = "alice's, =secret"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LISTENERS = {
    "OPEN": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "BOTH": "SASL_SSL",
    "SHORT": "SASL_PLAINTEXT",
}
SESSION_MS = 1300
"""A login may be renewed once a second, as at a real broker."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
async def closed(authority: Authority) -> AsyncIterator[EmbeddedBroker]:
    server = authority.issue("localhost", "127.0.0.1")
    asks: dict[str, object] = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(server.both_file),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.trusted),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.short.connections.max.reauth.ms": SESSION_MS,
        "connection.failed.authentication.delay.ms": 0,
    }
    for name in ("sasl", "both", "short"):
        asks[f"listener.name.{name}.sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
        asks[f"listener.name.{name}.plain.sasl.jaas.config"] = f'{PLAIN} required user_alice="{PASSWORD}";'
    async with horolog_broker(settings=asks) as broker:
        await add_scram_users(broker.addresses["OPEN"])
        yield broker


def security(
    authority: Authority, mechanism: str = "", *, tls: bool = False, password: str = PASSWORD, **more: str
) -> Security:
    given = {"security.protocol": f"{'SASL_' * bool(mechanism)}{'SSL' if tls else 'PLAINTEXT'}", **more}
    if tls:
        given["ssl.truststore.location"] = str(authority.trusted)
    if mechanism:
        given |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login(mechanism, password)}
    return Security.of(given)


def client_of(address: str, wanted: Security | None, timeout_ms: int = 10_000) -> Client:
    return Client(address, security=wanted, retry=RetryPolicy(timeout_ms=timeout_ms))


async def write_and_read(client: Client, count: int = 20) -> None:
    await Admin(client).create_topic("t")
    async with Producer(client) as producer, Consumer(client, group="g") as consumer, asyncio.timeout(30):
        for number in range(count):
            await producer.send("t", b"%d" % number)
        await consumer.subscribe(["t"])
        got = 0
        while got < count:
            got += len(await consumer.poll(200))


@pytest.mark.parametrize("mechanism", ["", *MECHANISMS])
@pytest.mark.parametrize("tls", [False, True], ids=["plaintext", "tls"])
async def test_the_right_credentials(closed: EmbeddedBroker, authority: Authority, mechanism: str, tls: bool) -> None:
    listener = {(False, False): "OPEN", (False, True): "TLS", (True, False): "SASL"}.get((bool(mechanism), tls), "BOTH")
    async with client_of(closed.addresses[listener], security(authority, mechanism, tls=tls)) as client:
        await write_and_read(client)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("tls", [False, True], ids=["plaintext", "tls"])
async def test_wrong_credentials(closed: EmbeddedBroker, authority: Authority, mechanism: str, tls: bool) -> None:
    wanted = security(authority, mechanism, tls=tls, password="wrong hush")
    async with client_of(closed.addresses["BOTH" if tls else "SASL"], wanted) as client:
        with pytest.raises(AuthenticationFailed) as caught:
            await client.metadata([])
    assert "hush" not in str(caught.value)


async def test_missing_credentials_and_certificates(closed: EmbeddedBroker, authority: Authority) -> None:
    for listener, wanted, said in [
        ("SASL", None, "may require credentials"),
        ("BOTH", security(authority, tls=True), "may require credentials"),
        ("TLS", None, "TLS"),
        ("OPEN", security(authority, tls=True), "may have no TLS"),
        ("OPEN", security(authority, "PLAIN"), "does not use SASL"),
        ("MUTUAL", security(authority, tls=True), "certificate"),
        ("TLS", Security.of({"security.protocol": "SSL"}), "unknown authority"),
    ]:
        async with client_of(closed.addresses[listener], wanted, 300) as client:
            with pytest.raises(KafkaError, match=said):
                await client.metadata([])


async def test_a_certificate_of_the_client(closed: EmbeddedBroker, authority: Authority) -> None:
    own = authority.issue("client")
    wanted = security(authority, tls=True, **{"ssl.keystore.location": str(own.both_file)})
    async with client_of(closed.addresses["MUTUAL"], wanted) as client:
        await write_and_read(client)


async def test_suites_of_ciphers(closed: EmbeddedBroker, authority: Authority) -> None:
    older = {"ssl.protocol": "TLSv1.2", "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}
    async with client_of(closed.addresses["TLS"], security(authority, tls=True, **older)) as client:
        assert (await client.metadata([])).nodes
    other = {"ssl.protocol": "TLSv1.2", "ssl.cipher.suites": "TLS_RSA_WITH_AES_128_CBC_SHA"}
    async with client_of(closed.addresses["TLS"], security(authority, tls=True, **other), 300) as client:
        with pytest.raises(KafkaError, match="TLS"):
            await client.metadata([])
    unknown = security(authority, tls=True, **{"ssl.cipher.suites": "TLS_NULL"})
    async with client_of(closed.addresses["TLS"], unknown) as client:
        with pytest.raises(TlsFailed, match=r"ssl\.cipher\.suites"):
            await client.metadata([])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_logins_that_end_are_renewed_under_load(
    closed: EmbeddedBroker, authority: Authority, mechanism: str
) -> None:
    async with client_of(closed.addresses["SHORT"], security(authority, mechanism)) as client, asyncio.timeout(60):
        await Admin(client).create_topic("t")
        connections = set()
        async with Producer(client, linger_ms=0) as producer, Consumer(client, group="g") as consumer:
            await consumer.subscribe(["t"])
            sent = got = 0
            end = time.monotonic() + 2.5 * SESSION_MS / 1000
            while time.monotonic() < end:
                await producer.send_and_wait("t", b"%d" % sent)
                sent += 1
                got += len(await consumer.poll(10))
                if got:
                    connections |= {each.result().connection for each in client.channels._tasks.values() if each.done()}
            while got < sent:
                got += len(await consumer.poll(100))
            assert got == sent
            assert [each.why_closed for each in connections] == [None] * len(connections)
