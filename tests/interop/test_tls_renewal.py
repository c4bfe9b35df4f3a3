"""An admin client replaces a listener's certificate: horolog and a real Kafka take the same ones and refuse the same ones."""

from __future__ import annotations

import shutil
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from benchmarks import kafka
from benchmarks.process import free_ports
from tests.support.broker_process import BrokerProcess
from tests.support.certificates import Certificates

pytestmark = pytest.mark.timeout(240)

RELEASE = "4.3.1"
EACH = ["horolog", pytest.param("kafka", marks=[pytest.mark.kafka_jars, pytest.mark.java])]
LOCATION = "listener.name.ssl.ssl.keystore.location"
TAKEN, REFUSED = "taken", "refused"
WAIT_S = {TAKEN: 30.0, REFUSED: 3.0}
RENEWALS = {
    "the same names": ({}, TAKEN, TAKEN),
    "another subject": ({"subject": "another"}, REFUSED, TAKEN),
    "a name less": ({"alternatives": ["localhost"]}, REFUSED, TAKEN),
    "a name more": ({"alternatives": ["localhost", "more.example.org", "127.0.0.1"]}, TAKEN, TAKEN),
}


@contextmanager
def opened(which: str, certificates: Certificates, **more: str) -> Iterator[tuple[str, str]]:
    """The addresses of a listener without TLS and of one with it."""
    plain, tls, control = free_ports(3)
    both = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{tls}"
    settings = certificates.settings(**{"listeners": both, **more})
    addresses = f"127.0.0.1:{plain}", f"127.0.0.1:{tls}"
    if which == "horolog":
        broker = BrokerProcess(certificates.folder / "data", settings).start()
        try:
            yield addresses
        finally:
            broker.stop()
        return
    try:
        kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    settings |= {
        "listeners": f"{both},CONTROLLER://127.0.0.1:{control}",
        "advertised.listeners": both,
        "controller.quorum.voters": f"1@127.0.0.1:{control}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
    }
    folder = certificates.folder / "kafka"
    kafka.start(RELEASE, folder, settings, port=plain, heap_mib=512)
    try:
        yield addresses
    finally:
        kafka.stop(folder)


def replaced(admin: AdminClient, file: Path) -> str:
    entry = ConfigEntry(LOCATION, str(file), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    try:
        admin.incremental_alter_configs([resource])[resource].result(20)
    except KafkaException:
        return REFUSED
    return TAKEN


def shown_at(address: str) -> str:
    host, _, port = address.rpartition(":")
    return ssl.get_server_certificate((host, int(port)))


def comes_to_show(address: str, file: Path, within_s: float) -> bool:
    """A Kafka takes up what it has answered a moment later, each of its network threads for itself: another may show the old one."""
    chain = file.read_text()
    ends = time.monotonic() + within_s
    while shown_at(address) not in chain:
        if time.monotonic() > ends:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.long
@pytest.mark.one_worker("the setting of one broker is changed, and any of two may show its certificate")
@pytest.mark.parametrize("allows_all", [False, True], ids=["as it is", "all is allowed"])
@pytest.mark.parametrize("which", EACH)
def test_the_same_certificates_take_anothers_place(which: str, allows_all: bool, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    more = {"ssl_allow_dn_changes": "true", "ssl_allow_san_changes": "true"} if allows_all else {}
    with opened(which, certificates, **more) as (plain, tls):
        admin = AdminClient({"bootstrap.servers": plain, "log_level": 0})
        for number, (renewed, careful, allowing) in enumerate(RENEWALS.values()):
            certificates.renew(**renewed)
            file = tmp_path / f"{number}.pem"
            shutil.copy(certificates.server, file)
            outcome = allowing if allows_all else careful
            assert replaced(admin, file) == outcome, renewed
            assert comes_to_show(tls, file, WAIT_S[outcome]) == (outcome == TAKEN), renewed
