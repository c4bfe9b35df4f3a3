"""Who comes in by SASL and who does not, for each mechanism and each client, on horolog and on a real Kafka with the same settings."""

from __future__ import annotations

import contextlib
import gc
import re
import shutil
import ssl
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from benchmarks import kafka
from tests.support.certificates import Certificates
from tests.support.sasl_brokers import MECHANISMS, PASSWORD, SCRAM, Door, horolog, real_kafka, tls_below
from tests.support.waiting import wait_until

with warnings.catch_warnings():  # it reads its schemas in a way that Python deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient
    from kafka.errors import KafkaConfigurationError, KafkaError

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.timeout(300),
]
RELEASE = "4.3.1"
KCAT = shutil.which("kcat")
WAIT_S = 60.0
PATIENCE_MS = 60_000
"""How long a client waits for an answer: a refusal comes as one, and a busy broker is no refusal."""
KAFKA = [pytest.param(one, marks=[pytest.mark.kafka_jars, pytest.mark.java]) for one in ("kafka", "kafka-tls")]
DOORS = ["horolog", "horolog-tls", *KAFKA]
FIRST_LIBRDKAFKA_WITH_SCRAM = (2, 6, 1)
"""Older ones say their nonce twice in the last message: Kafka let that pass until 3.8, and 4 refuses it, as RFC 5802 wants."""

IN, REFUSED = "in", "refused"


@pytest.fixture(autouse=True)
def collect_what_clients_leave() -> Iterator[None]:
    """Some do not close their sockets when they are refused; let that be said here and not at some later test."""
    yield
    gc.collect()


@contextlib.contextmanager
def opened(which: str, folder: Path) -> Iterator[Door]:
    """One of `DOORS`: a broker whose SCRAM users were added by a client."""
    certificates = Certificates(folder)
    has_tls = which.endswith("-tls")
    more = tls_below(certificates) if has_tls else {}
    with contextlib.ExitStack() as ends:
        if which.startswith("horolog"):
            found, _ = ends.enter_context(horolog(folder / "data", **more))
        else:
            try:
                kafka.libs(RELEASE)
            except kafka.MissingJarsError as error:
                pytest.skip(str(error))
            found = ends.enter_context(real_kafka(RELEASE, folder / "data", **more))
        found = found._replace(ca=str(certificates.ca) if has_tls else "")
        add_alice(found.open)
        yield found


@pytest.fixture(scope="module", params=DOORS)
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with opened(request.param, tmp_path_factory.mktemp("sasl")) as found:
        yield found


def add_alice(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for kind in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        credential = UserScramCredentialUpsertion("alice", ScramCredentialInfo(kind, 4096), PASSWORD.encode())
        for future in admin.alter_user_scram_credentials([credential]).values():
            future.result(WAIT_S)


# -- clients: each says whether it came in


def by_librdkafka(address: str, mechanism: str | None, user: str, password: str, ca: str = "") -> str:
    said: list[str] = []
    login = {"security.protocol": "PLAINTEXT"}
    if mechanism is not None:
        login = {
            "security.protocol": "SASL_SSL" if ca else "SASL_PLAINTEXT",
            **({"ssl.ca.location": ca} if ca else {}),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }
    client = AdminClient(
        {"bootstrap.servers": address, **login, "error_cb": lambda error: said.append(error.name()), "log_level": 0}
    )
    patience_s = 3 if mechanism is None else WAIT_S  # who does not log in is not told that this is why
    came_in = lists_topics(client, lambda: "_AUTHENTICATION" in said, patience_s)
    assert came_in or mechanism is None or "_AUTHENTICATION" in said, said
    return IN if came_in else REFUSED


def lists_topics(client: AdminClient, is_refused: Callable[[], bool], patience_s: float = WAIT_S) -> bool:
    """Whether it is answered; it would try again and again."""
    ends = time.monotonic() + patience_s
    while time.monotonic() < ends and not is_refused():
        with contextlib.suppress(KafkaException):
            return bool(client.list_topics(timeout=0.3).brokers)
        client.poll(0)
    return False


def by_kafka_python(address: str, mechanism: str | None, user: str, password: str, ca: str = "") -> str:
    login: dict[str, Any] = {}
    if mechanism is not None:
        login = {
            "security_protocol": "SASL_SSL" if ca else "SASL_PLAINTEXT",
            **({"ssl_cafile": ca} if ca else {}),
            "sasl_mechanism": mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": password,
        }
    client = None
    try:
        client = KafkaAdminClient(
            bootstrap_servers=address, request_timeout_ms=PATIENCE_MS, bootstrap_timeout_ms=2000, **login
        )
        return IN if client.list_topics() is not None else REFUSED
    except KafkaConfigurationError:
        raise
    except KafkaError:
        return REFUSED
    finally:
        if client is not None:
            client.close()
        gc.collect()


async def by_aiokafka(address: str, mechanism: str | None, user: str, password: str, ca: str = "") -> str:
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import KafkaError as AiokafkaError

    login: dict[str, Any] = {}
    if mechanism is not None:
        login = {
            "security_protocol": "SASL_SSL" if ca else "SASL_PLAINTEXT",
            **({"ssl_context": ssl.create_default_context(cafile=ca)} if ca else {}),
            "sasl_mechanism": mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": password,
        }
    client = AIOKafkaProducer(bootstrap_servers=address, request_timeout_ms=PATIENCE_MS, **login)
    try:
        await client.start()
        await client.send_and_wait("by-aiokafka", b"x")
    except AiokafkaError:
        return REFUSED
    else:
        return IN
    finally:
        await client.stop()


def by_kcat(address: str, mechanism: str | None, user: str, password: str, ca: str = "") -> str:
    login = {"security.protocol": "PLAINTEXT"}
    if mechanism is not None:
        login = {
            "security.protocol": "SASL_SSL" if ca else "SASL_PLAINTEXT",
            **({"ssl.ca.location": ca} if ca else {}),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }
    options = [word for key, value in login.items() for word in ("-X", f"{key}={value}")]
    patience_s = 3 if mechanism is None else WAIT_S  # who does not log in is not told that this is why
    command = [str(KCAT), "-b", address, "-L", "-m", f"{patience_s:.0f}", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as kcat:
        assert kcat.stderr is not None
        for line in kcat.stderr:  # it would try again and again
            if mechanism is not None and "SASL authentication error" in line:
                kcat.kill()
                return REFUSED
    assert kcat.returncode == 0 or mechanism is None
    return IN if kcat.returncode == 0 else REFUSED


def librdkafka_of_kcat() -> tuple[int, ...]:
    told = subprocess.run([str(KCAT), "-V"], capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r"librdkafka (\d+)\.(\d+)\.(\d+)", told.stdout + told.stderr)
    assert found, told
    return tuple(map(int, found.groups()))


CASES = [
    *[pytest.param(one, "alice", PASSWORD, IN, id=f"{one}-right") for one in MECHANISMS],
    *[pytest.param(one, "alice", "wrong", REFUSED, id=f"{one}-wrong") for one in MECHANISMS],
    *[pytest.param(one, "nobody", PASSWORD, REFUSED, id=f"{one}-nobody") for one in MECHANISMS],
    pytest.param(None, "", "", REFUSED, id="missing"),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("mechanism", "user", "password", "outcome"), CASES)
@pytest.mark.parametrize("client", [by_librdkafka, by_kafka_python], ids=lambda one: one.__name__)
def test_a_client_comes_in_or_does_not(
    door: Door, client: Callable[..., str], mechanism: str | None, user: str, password: str, outcome: str
) -> None:
    assert client(door.closed, mechanism, user, password, door.ca) == outcome


@pytest.mark.parametrize(("mechanism", "user", "password", "outcome"), CASES)
async def test_aiokafka_comes_in_or_does_not(
    door: Door, mechanism: str | None, user: str, password: str, outcome: str
) -> None:
    assert await by_aiokafka(door.closed, mechanism, user, password, door.ca) == outcome


@pytest.mark.one_in(3)
@pytest.mark.skipif(KCAT is None, reason="kcat is not installed")
@pytest.mark.parametrize(("mechanism", "user", "password", "outcome"), CASES)
def test_kcat_comes_in_or_does_not(door: Door, mechanism: str | None, user: str, password: str, outcome: str) -> None:
    if mechanism in SCRAM and librdkafka_of_kcat() < FIRST_LIBRDKAFKA_WITH_SCRAM:
        outcome = REFUSED
    assert by_kcat(door.closed, mechanism, user, password, door.ca) == outcome


def test_users_are_listed_changed_and_removed(door: Door) -> None:
    admin = AdminClient({"bootstrap.servers": door.open})
    kind = ScramMechanism.SCRAM_SHA_256
    put = UserScramCredentialUpsertion("carol", ScramCredentialInfo(kind, 5000), b"first")
    admin.alter_user_scram_credentials([put])["carol"].result(WAIT_S)
    (info,) = admin.describe_user_scram_credentials(["carol"])["carol"].result(WAIT_S).scram_credential_infos
    assert (info.mechanism, info.iterations) == (kind, 5000)
    wait_until(lambda: by_librdkafka(door.closed, SCRAM[0], "carol", "first", door.ca) == IN)
    put = UserScramCredentialUpsertion("carol", ScramCredentialInfo(kind, 4096), b"second")
    admin.alter_user_scram_credentials([put])["carol"].result(WAIT_S)
    wait_until(lambda: by_librdkafka(door.closed, SCRAM[0], "carol", "first", door.ca) == REFUSED)
    assert by_librdkafka(door.closed, SCRAM[0], "carol", "second", door.ca) == IN
    admin.alter_user_scram_credentials([UserScramCredentialDeletion("carol", kind)])["carol"].result(WAIT_S)
    wait_until(lambda: by_librdkafka(door.closed, SCRAM[0], "carol", "second", door.ca) == REFUSED)


@pytest.mark.one_broker("a folder is adopted")
@pytest.mark.kafka_jars
@pytest.mark.java
def test_users_of_a_kafka_come_in_once_its_folder_is_taken_over(tmp_path: Path) -> None:
    home = tmp_path / "kafka"
    try:
        kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(str(error))
    with real_kafka(RELEASE, home) as found:
        add_alice(found.open)
    for _ in range(2):
        with horolog(home / "logs") as (found, broker):
            assert [by_librdkafka(found.closed, one, "alice", PASSWORD) for one in SCRAM] == [IN, IN]
            assert by_librdkafka(found.closed, SCRAM[0], "alice", "wrong") == REFUSED
            broker.stop()
