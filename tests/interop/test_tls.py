"""Clients over TLS, with the right certificate, a wrong one and none: horolog and a real Kafka let the same ones in."""

from __future__ import annotations

import gc
import shutil
import socket
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from benchmarks import kafka
from benchmarks.process import free_ports
from horolog.testing import broker_in_thread
from tests.interop.java_logins import RELEASES, outcomes
from tests.support.broker_process import BrokerProcess
from tests.support.certificates import PASSWORD, Certificates
from tests.support.names import unique

with warnings.catch_warnings():  # about how it reads its own schemas
    warnings.simplefilter("ignore")
    from kafka import KafkaConsumer, KafkaProducer

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

RELEASE = "4.3.1"
KCAT = shutil.which("kcat")
WAIT_S = 60.0
REFUSED_WAIT_S = 1.5
"""After which a client gives up that would try again and again."""
ONE_OF_THEM = [
    "horolog",
    pytest.param("horolog, two workers", marks=pytest.mark.slow),
    pytest.param(RELEASE, marks=[pytest.mark.kafka_jars, pytest.mark.java]),
]


@pytest.fixture(autouse=True)
def collect_what_clients_leave() -> Iterator[None]:
    """A client whose start failed leaves its sockets to the collector."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@contextmanager
def real(certificates: Certificates, port: int) -> Iterator[None]:
    try:
        kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    plain, controller = free_ports(2)
    settings = certificates.settings(
        listeners=f"PLAINTEXT://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller},SSL://127.0.0.1:{port}",
        advertised_listeners=f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{port}",
        controller_quorum_voters=f"1@127.0.0.1:{controller}",
        listener_security_protocol_map="CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
        ssl_client_auth="required",
    )
    folder = certificates.folder / "kafka"
    kafka.start(RELEASE, folder, settings, port=plain)
    try:
        yield
    finally:
        kafka.stop(folder)


@pytest.fixture(scope="module", params=ONE_OF_THEM)
def address(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[str]:
    """Of a listener that asks for a client's certificate."""
    if request.param == RELEASE:
        (port,) = free_ports(1)
        with real(certificates, port):
            yield f"127.0.0.1:{port}"
        return
    settings = certificates.settings(ssl_client_auth="required")
    if "workers" in request.param:
        settings["horolog.workers"] = "2"
    broker = BrokerProcess(certificates.folder / request.param.replace(", ", "-"), settings).start()
    yield broker.address
    assert broker.stop() == 0
    assert "Traceback" not in broker.log()


def librdkafka(address: str, certificates: Certificates, shown: Path | None, wait_s: float = WAIT_S) -> bytes:
    conf: dict[str, str | int] = {
        "bootstrap.servers": address,
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates.ca),
        "message.timeout.ms": int(wait_s * 1000),
        "log_level": 0,
    }
    if shown is not None:
        conf |= {"ssl.certificate.location": str(shown), "ssl.key.location": str(shown)}
    topic = unique("tls")
    producer = Producer(conf)
    failures: list[object] = []
    producer.produce(topic, b"x" * 100_000, callback=lambda error, _: failures.append(error))
    producer.flush(2 * wait_s)
    if failures != [None]:
        raise KafkaException(failures)
    del conf["message.timeout.ms"]
    consumer = Consumer({**conf, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    record = consumer.poll(3 * wait_s)
    consumer.close()
    value: bytes = record.value()
    return value


def kafka_python(address: str, certificates: Certificates, shown: Path | None, wait_s: float = WAIT_S) -> bytes:
    given = {
        "bootstrap_servers": address,
        "security_protocol": "SSL",
        "ssl_context": certificates.client(shown),
        "bootstrap_timeout_ms": int(wait_s * 1000),
    }
    topic = unique("tls")
    producer = KafkaProducer(**given, max_block_ms=int(wait_s * 1000))
    try:
        producer.send(topic, b"x" * 100_000).get(wait_s)
    finally:
        producer.close(0)
    consumer = KafkaConsumer(
        topic, **given, auto_offset_reset="earliest", group_id=None, consumer_timeout_ms=int(3 * wait_s * 1000)
    )
    try:
        value: bytes = next(consumer).value
        return value
    finally:
        consumer.close()


def kcat(address: str, certificates: Certificates, shown: Path | None, wait_s: float = WAIT_S) -> bytes:
    topic = unique("tls")
    options = ["-X", "security.protocol=SSL", "-X", f"ssl.ca.location={certificates.ca}"]
    options += ["-X", f"message.timeout.ms={int(wait_s * 1000)}", "-m", str(int(wait_s))]
    if shown is not None:
        options += ["-X", f"ssl.certificate.location={shown}", "-X", f"ssl.key.location={shown}"]
    for mode, given in (["-P"], b"x" * 100_000), (["-C", "-o", "beginning", "-c", "1"], b""):
        done = subprocess.run(
            [str(KCAT), "-b", address, "-t", topic, *mode, *options],
            input=given,
            capture_output=True,
            timeout=100,
            check=True,
        )
    return done.stdout.rstrip(b"\n")


async def aiokafka(address: str, certificates: Certificates, shown: Path | None, wait_s: float = WAIT_S) -> bytes:
    given = {
        "bootstrap_servers": address,
        "security_protocol": "SSL",
        "ssl_context": certificates.client(shown),
        "request_timeout_ms": int(wait_s * 1000),
    }
    topic = unique("tls")
    producer = AIOKafkaProducer(**given)
    try:
        await producer.start()
        await producer.send_and_wait(topic, b"x" * 100_000)
    finally:
        await producer.stop()
    consumer = AIOKafkaConsumer(topic, **given, auto_offset_reset="earliest")
    await consumer.start()
    try:
        value: bytes = (await consumer.getone()).value
        return value
    finally:
        await consumer.stop()


Client = Callable[..., bytes]


@pytest.mark.parametrize(
    "client",
    [
        librdkafka,
        kafka_python,
        pytest.param(kcat, marks=pytest.mark.skipif(KCAT is None, reason="kcat is not installed")),
    ],
)
def test_who_shows_the_right_certificate_comes_in(client: Client, address: str, certificates: Certificates) -> None:
    assert client(address, certificates, certificates.alice) == b"x" * 100_000
    for shown in (certificates.mallory, None):
        with pytest.raises(Exception):  # noqa: B017, PT011 - each client has an error of its own
            client(address, certificates, shown, REFUSED_WAIT_S)


async def test_aiokafka_with_the_right_certificate(address: str, certificates: Certificates) -> None:
    assert await aiokafka(address, certificates, certificates.alice) == b"x" * 100_000
    for shown in (certificates.mallory, None):
        with pytest.raises(Exception):  # noqa: B017, PT011
            await aiokafka(address, certificates, shown, REFUSED_WAIT_S)


@pytest.mark.kafka_jars
@pytest.mark.java
def test_kafkas_own_tools(address: str, certificates: Certificates) -> None:
    try:
        jars = kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    for shown, comes_in in ((certificates.alice, True), (certificates.mallory, False)):
        properties = shown.with_suffix(".properties")
        properties.write_text(
            "security.protocol=SSL\nssl.truststore.type=PEM\nssl.keystore.type=PEM\n"
            f"ssl.truststore.location={certificates.ca}\nssl.keystore.location={shown}\n"
            "ssl.endpoint.identification.algorithm=\n"
        )
        command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
        command += ["org.apache.kafka.tools.TopicCommand", "--bootstrap-server", address]
        command += ["--command-config", str(properties), "--create", "--topic", unique("tls")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert (done.returncode == 0) is comes_in, done.stdout + done.stderr


@pytest.mark.java
@pytest.mark.parametrize("release", RELEASES)
def test_java_clients(address: str, certificates: Certificates, tmp_path: Path, release: str) -> None:
    trusting = f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={certificates.ca}\n"
    settings = [
        f"{trusting}ssl.keystore.type=PKCS12\nssl.keystore.password={PASSWORD}\nssl.key.password={PASSWORD}\n"
        f"ssl.keystore.location={certificates.pkcs12(shown)}\n"
        for shown in (certificates.alice, certificates.mallory)
    ]
    said = outcomes(release, tmp_path, address, [*settings, trusting, "security.protocol=SSL\n"])
    assert [line.partition(":")[0] for line in said] == ["in", "refused", "refused", "refused"], said


NAMES = """
import java.io.*; import java.security.cert.*;
class Names { public static void main(String[] files) throws Exception { for (String file : files)
  System.out.println(((X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream(file)))
    .getSubjectX500Principal().getName()); } }
"""


@pytest.mark.java
def test_names_are_those_that_java_gives(tmp_path: Path) -> None:
    from horolog.base.certificates import read
    from horolog.broker.security.stores import encoded_certificates

    subjects = [
        "/C=DE/ST=NRW/L=Köln/O=Logs, Inc/OU=a+b/CN=alice",
        "/CN= both /emailAddress=a@b.org",
        "/DC=org/DC=example/UID=u1/serialNumber=7/title=Dr",
        '/CN=#hash;<x>="q"\\\\back/street=Way 1/GN=Al/SN=Ice',
        "/O=x/CN=a+UID=b",
    ]
    files, found = [], []
    for number, subject in enumerate(subjects):
        path = tmp_path / f"{number}.pem"
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            str(tmp_path / "key"),
            "-utf8",
        ]
        command += ["-multivalue-rdn"] if "+UID" in subject else []
        subprocess.run([*command, "-subj", subject, "-out", str(path)], capture_output=True, check=True)
        files.append(str(path))
        found.append(read(encoded_certificates(path.read_text())[0]).subject)
    (tmp_path / "Names.java").write_text(NAMES)
    ran = subprocess.run(
        ["java", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", str(tmp_path / "Names.java"), *files],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert found == ran.stdout.splitlines()


def shown_at(address: str, certificates: Certificates) -> bytes | None:
    """The certificate that a new handshake gets."""
    host, _, port = address.rpartition(":")
    raw = socket.create_connection((host, int(port)), 10)
    with raw, certificates.client().wrap_socket(raw, server_hostname="localhost") as secure:
        return secure.getpeercert(binary_form=True)


def test_a_renewed_certificate_is_shown_without_a_restart(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    broker = BrokerProcess(tmp_path / "data", certificates.settings(horolog_ssl_files_check_interval_ms="100")).start()

    def shown() -> bytes | None:
        return shown_at(broker.address, certificates)

    try:
        before = shown()
        certificates.server.write_text("broken")
        time.sleep(0.5)
        assert shown() == before
        certificates.renew()
        deadline = time.monotonic() + 60
        while shown() == before:
            assert time.monotonic() < deadline, broker.log()
            time.sleep(0.05)
    finally:
        broker.stop()
    assert "keeps its previous certificate" in broker.log()
    assert "new handshakes use the certificate of CN=broker" in broker.log()


def test_an_admin_client_changes_the_certificate(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    listeners = certificates.settings(listeners="PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0")
    location, key = "listener.name.ssl.ssl.keystore.location", "listener.name.ssl.ssl.keystore.key"
    chain = "listener.name.ssl.ssl.keystore.certificate.chain"
    with broker_in_thread(settings=listeners) as broker:
        admin = AdminClient({"bootstrap.servers": broker.addresses["PLAINTEXT"]})
        address = broker.addresses["SSL"]

        def alter(values: dict[str, str]) -> None:
            entries = [
                ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in values.items()
            ]
            resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=entries)
            admin.incremental_alter_configs([resource])[resource].result(20)

        seen = [shown_at(address, certificates)]
        for wrong, reason in (
            ({location: "/none"}, "No such file"),
            ({"ssl.keystore.location": str(certificates.server)}, "for one listener only"),
            ({chain: "text"}, "not both"),
            ({key: "secret"}, "not both"),
        ):
            with pytest.raises(KafkaException, match=reason) as refused:
                alter(wrong)
            assert "secret" not in str(refused.value)
            assert shown_at(address, certificates) == seen[0]
        certificates.renew()
        alter({location: str(certificates.server)})  # the same again: its file is read anew
        seen.append(shown_at(address, certificates))
        certificates.renew()
        text = certificates.server.read_text()
        at = text.index("-----BEGIN CERT")
        alter({location: "", key: text[:at], chain: text[at:]})
        seen.append(shown_at(address, certificates))
        assert len(set(seen)) == 3

        resource = ConfigResource(ResourceType.BROKER, "1")
        described = admin.describe_configs([resource])[resource].result(20)
        assert described[key].value is None
        assert described[key].is_sensitive
        assert described[chain].value is None
        assert not described[location].value
