"""The bundled client and its commands against a real Kafka that asks for TLS, credentials or both: right, wrong and missing ones.

Needs Java and the jars of Kafka 4.3.1 (`python -m benchmarks.kafka fetch 4.3.1`).
"""

import asyncio
import io
import time
from collections.abc import Iterator

import pytest

from benchmarks import kafka
from horolog import Admin, Client, Consumer, Producer
from horolog.base.properties_file import escape
from horolog.client.cli.kafka_scripts.__main__ import main as kafka_script
from horolog.client.cli.main import main
from horolog.client.values.errors import AuthenticationFailed, ConnectionFailed, KafkaError, TlsFailed
from horolog.client.wire.retry import RetryPolicy
from horolog.commands.console import Console
from tests.interop.our_client import new_name, read_all
from tests.support.authority import Authority
from tests.support.secured_kafka import RELEASE, SecuredKafka, add_scram_users, secured_kafka

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
WITH_PASSWORDS = MECHANISMS[:3]
SECONDS_OF_SESSIONS = 5.0
FINAL_SECONDS = 60.0
"""A final refusal comes at once; a client that tries again does so for 120 s."""
INVALID_TOKEN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "horolog.sasl.oauthbearer.token": "abc",
}


@pytest.fixture(scope="module")
def secured() -> Iterator[SecuredKafka]:
    try:
        kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    with secured_kafka() as running:
        asyncio.run(add_scram_users(running.open))
        yield running


def client_of(address: str, properties: dict[str, str] | None, timeout_ms: int = 20_000) -> Client:
    return Client(address, security=properties, retry=RetryPolicy(timeout_ms=timeout_ms))


async def produce_and_consume(client: Client) -> None:
    topic = new_name()
    await Admin(client).create_topic(topic, 2)
    async with Producer(client) as producer:
        for number in range(50):
            await producer.send(topic, b"%d" % number, partition=number % 2)
    assert len(await read_all(client, topic, 2)) == 50
    async with Consumer(client, group=new_name("group")) as consumer, asyncio.timeout(60):
        await consumer.subscribe([topic])
        got = 0
        while got < 50:
            got += len(await consumer.poll(500))
        await consumer.commit()
    await Admin(client).delete_topics([topic])


@pytest.mark.parametrize("tls", [False, True], ids=["plaintext", "tls"])
@pytest.mark.parametrize("mechanism", ["", *MECHANISMS])
async def test_the_right_credentials(secured: SecuredKafka, mechanism: str, tls: bool) -> None:
    address = {(False, False): secured.open, (False, True): secured.tls, (True, False): secured.sasl}.get(
        (bool(mechanism), tls), secured.sasl_tls
    )
    async with client_of(address, secured.properties(mechanism, tls=tls)) as client:
        await produce_and_consume(client)


async def refused(
    address: str, properties: dict[str, str] | None, timeout_ms: int = 120_000
) -> tuple[KafkaError, float]:
    began = time.monotonic()
    async with client_of(address, properties, timeout_ms) as client:
        with pytest.raises(KafkaError) as caught:
            await client.metadata([])
    return caught.value, time.monotonic() - began


@pytest.mark.parametrize("mechanism", WITH_PASSWORDS)
async def test_a_wrong_password_is_final(secured: SecuredKafka, mechanism: str) -> None:
    error, seconds = await refused(secured.sasl, secured.properties(mechanism, password="hush-hush"))
    assert isinstance(error, AuthenticationFailed)
    assert "invalid" in str(error).lower()
    assert "hush" not in str(error)
    assert seconds < FINAL_SECONDS


async def test_a_wrong_token_is_final(secured: SecuredKafka) -> None:
    error, _ = await refused(secured.sasl, INVALID_TOKEN)
    assert isinstance(error, AuthenticationFailed)
    assert "invalid_token" in str(error)


async def test_missing_credentials_are_hinted_at(secured: SecuredKafka) -> None:
    error, _ = await refused(secured.sasl, None, 500)
    assert isinstance(error, ConnectionFailed)
    assert "may require credentials" in str(error)


async def test_credentials_for_an_open_listener(secured: SecuredKafka) -> None:
    error, _ = await refused(secured.open, secured.properties("PLAIN"))
    assert "does not use SASL" in str(error)


async def test_faults_of_tls_are_named(secured: SecuredKafka, tmp_path) -> None:
    stranger = Authority(tmp_path)
    for properties, address, said in [
        ({"security.protocol": "SSL"}, secured.tls, "unknown authority"),
        ({"security.protocol": "SSL", "ssl.ca.location": str(stranger.trusted)}, secured.tls, "unknown authority"),
        (None, secured.tls, "speaks TLS"),
        (secured.properties("PLAIN"), secured.sasl_tls, "speaks TLS"),
        (secured.properties(tls=True), secured.mutual, "certificate"),
        (
            secured.properties(tls=True) | {"ssl.keystore.location": str(stranger.issue("client").both_file)},
            secured.mutual,
            "certificate",
        ),
    ]:
        error, seconds = await refused(address, properties)
        assert isinstance(error, TlsFailed), error
        assert said in str(error)
        assert seconds < FINAL_SECONDS
    error, _ = await refused(secured.open, secured.properties(tls=True), 500)
    assert "may have no TLS" in str(error)


async def test_a_certificate_of_the_client(secured: SecuredKafka, tmp_path) -> None:
    store = tmp_path / "own.p12"
    store.write_bytes(secured.client.pkcs12("secret"))
    shown = secured.properties(tls=True)
    for own in (
        {"ssl.keystore.location": str(secured.client.both_file)},
        {"ssl.keystore.location": str(store), "ssl.keystore.password": "secret", "ssl.keystore.type": "PKCS12"},
    ):
        async with client_of(secured.mutual, shown | own) as client:
            assert (await client.metadata([])).nodes


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_sessions_of_two_seconds_under_load(secured: SecuredKafka, mechanism: str) -> None:
    """Kafka ends a connection whose session is over: all of them stay, and nothing is lost."""
    topic = new_name()
    async with client_of(secured.short, secured.properties(mechanism)) as client, asyncio.timeout(90):
        await Admin(client).create_topic(topic)
        connections = set()
        async with Producer(client, linger_ms=0) as producer, Consumer(client, group=new_name("group")) as consumer:
            await consumer.subscribe([topic])
            sent = got = 0
            end = time.monotonic() + SECONDS_OF_SESSIONS
            while time.monotonic() < end:
                await producer.send_and_wait(topic, b"%d" % sent)
                sent += 1
                got += len(await consumer.poll(20))
                if got:  # all lanes are open
                    connections |= {each.result().connection for each in client.channels._tasks.values() if each.done()}
            while got < sent:
                got += len(await consumer.poll(200))
            assert got == sent
            assert [each.why_closed for each in connections] == [None] * len(connections)


def run(words: list[str], stdin: str = "", script: bool = False, **environ: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    console = Console(out, err, io.StringIO(stdin), environ)
    return int((kafka_script if script else main)(words, console)), out.getvalue(), err.getvalue()


def test_commands(secured: SecuredKafka, tmp_path) -> None:
    topic = new_name()
    given = secured.properties("SCRAM-SHA-512", tls=True)
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={escape(value)}\n" for key, value in given.items()))
    file.chmod(0o600)
    (tmp_path / "horolog").mkdir()
    profile = "".join(f"{key!r} = {value!r}\n" for key, value in given.items())
    config = tmp_path / "horolog" / "config.toml"
    config.write_text(f"[profiles.secured]\nbootstrap = '{secured.sasl_tls}'\n{_toml(given)}")
    assert profile
    config.chmod(0o600)
    there = ["-b", secured.sasl_tls, "--timeout", "20s"]
    assert run(["topics", "create", topic, "--command-config", str(file), *there])[0] == 0
    by_name = {"XDG_CONFIG_HOME": str(tmp_path), "HOROLOG_PROFILE": "secured"}
    code, out, err = run(["topics", "list", "--timeout", "20s"], **by_name)
    assert (code, err) == (0, "")
    assert topic in out
    assert (
        run(["health", "--timeout", "20s"], HOROLOG_COMMAND_CONFIG=str(file), HOROLOG_BOOTSTRAP=secured.sasl_tls)[0]
        == 0
    )
    code, out, err = run(
        ["kafka-topics.sh", "--list", "--bootstrap-server", secured.sasl_tls, "--command-config", str(file)],
        script=True,
    )
    assert (code, err) == (0, "")
    assert topic in out.split()
    code, _, err = run(["topics", "list", "-b", secured.sasl_tls, "--timeout", "2s"])
    assert code == 1
    assert "speaks TLS" in err
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(file.read_text().replace("secret", "hush"))
    wrong.chmod(0o600)
    code, out, err = run(["topics", "list", "--command-config", str(wrong), *there])
    assert (code, out) == (1, "")
    assert "refused the login" in err
    assert "hush" not in err


def _toml(given: dict[str, str]) -> str:
    return "".join(f"\"{key}\" = '''{value}'''\n" for key, value in given.items())
