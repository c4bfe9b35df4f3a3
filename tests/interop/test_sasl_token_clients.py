"""Clients come in by tokens or do not, with TLS below and without, on horolog and on a real Kafka that is given the same keys.

kcat is left out: it takes tokens from an identity provider only, as librdkafka does, which is here.
"""

from __future__ import annotations

import contextlib
import gc
import json
import ssl
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from benchmarks import kafka
from horolog import Client, Security
from horolog.client.values.errors import AuthenticationFailed
from tests.interop.java_logins import RELEASES, outcomes
from tests.interop.test_sasl import DOORS, IN, PATIENCE_MS, REFUSED, RELEASE, lists_topics
from tests.interop.test_sasl_programs import CLIENTS, PROGRAMS
from tests.support.certificates import Certificates
from tests.support.sasl_brokers import LISTENER, MODULES, Door, horolog, real_kafka, tls_below
from tests.support.tokens import Signer

with warnings.catch_warnings():  # it reads its schemas in a way that Python deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient
    from kafka.errors import KafkaError
    from kafka.net.sasl.oauth import AbstractTokenProvider

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.timeout(300),
]
SIGNER, OTHER = Signer("RSA", "k"), Signer("RSA", "k")
OAUTH = f"{LISTENER}oauthbearer."
MODULE = f"{MODULES}.oauthbearer.OAuthBearerLoginModule"
AUDIENCE = "brokers"


def claims(**others: object) -> dict[str, object]:
    now = int(time.time())
    return {"sub": "ann", "iat": now, "exp": now + 900, "aud": AUDIENCE, **others}


def token(case: str) -> str:
    made = {
        "good": lambda: SIGNER.sign(claims(), "RS256"),
        "by another": lambda: OTHER.sign(claims(), "RS256"),
        "expired": lambda: SIGNER.sign(claims(iat=int(time.time()) - 900, exp=int(time.time()) - 300), "RS256"),
        "for others": lambda: SIGNER.sign(claims(aud="others"), "RS256"),
        "by the public key": lambda: SIGNER.sign_by_public_key(claims()),
    }
    return made[case]()


CASES = {"good": IN, "by another": REFUSED, "expired": REFUSED, "for others": REFUSED, "by the public key": REFUSED}


@contextlib.contextmanager
def opened(which: str, folder: Path) -> Iterator[Door]:
    """One of `DOORS`: a broker that lets in whoever has a good token."""
    (folder / "keys").write_text(json.dumps({"keys": [SIGNER.jwk]}))
    certificates = Certificates(folder)
    has_tls = which.endswith("-tls")
    more = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{OAUTH}sasl.jaas.config": f"{MODULE} required;",
        f"{OAUTH}sasl.server.callback.handler.class": f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler",
        f"{OAUTH}sasl.oauthbearer.jwks.endpoint.url": f"file://{folder}/keys",
        f"{OAUTH}sasl.oauthbearer.expected.audience": AUDIENCE,
        **(tls_below(certificates) if has_tls else {}),
    }
    with contextlib.ExitStack() as ends:
        if which.startswith("horolog"):
            found, _ = ends.enter_context(horolog(folder / "data", **more))
        else:
            try:
                kafka.libs(RELEASE)
            except kafka.MissingJarsError as error:
                pytest.skip(str(error))
            patch = ends.enter_context(pytest.MonkeyPatch.context())
            allowed = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
            patch.setenv("JDK_JAVA_OPTIONS", f"-D{allowed}=file://{folder}/keys")
            found = ends.enter_context(real_kafka(RELEASE, folder / "data", **more))
        yield found._replace(ca=str(certificates.ca) if has_tls else "")


@pytest.fixture(scope="module", params=DOORS)
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with opened(request.param, tmp_path_factory.mktemp("tokens")) as found:
        yield found


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("built")


def protocol(door: Door) -> str:
    return "SASL_SSL" if door.ca else "SASL_PLAINTEXT"


def by_librdkafka(door: Door, text: str) -> str:
    said: list[str] = []
    settings = {
        "bootstrap.servers": door.closed,
        "security.protocol": protocol(door),
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (text, time.time() + 600),
        "error_cb": lambda error: said.append(error.name()),
        "log_level": 0,
        **({"ssl.ca.location": door.ca} if door.ca else {}),
    }
    client = AdminClient(settings)
    client.poll(0.5)
    return IN if lists_topics(client, lambda: "_AUTHENTICATION" in said) else REFUSED


def by_kafka_python(door: Door, text: str) -> str:
    class Given(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return text

    client = None
    try:
        client = KafkaAdminClient(
            bootstrap_servers=door.closed,
            request_timeout_ms=PATIENCE_MS,
            bootstrap_timeout_ms=2000,
            security_protocol=protocol(door),
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Given(),
            **({"ssl_cafile": door.ca} if door.ca else {}),
        )
        return IN if client.list_topics() is not None else REFUSED
    except KafkaError:
        return REFUSED
    finally:
        if client is not None:
            client.close()
        gc.collect()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("client", [by_librdkafka, by_kafka_python], ids=lambda one: one.__name__)
def test_a_client_comes_in_or_does_not(door: Door, client: Callable[[Door, str], str], case: str) -> None:
    assert client(door, token(case)) == CASES[case]


async def by_aiokafka(door: Door, text: str) -> str:
    from aiokafka import AIOKafkaProducer
    from aiokafka.abc import AbstractTokenProvider as TokenProvider
    from aiokafka.errors import KafkaError as AiokafkaError

    class Given(TokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return text

    client = AIOKafkaProducer(
        bootstrap_servers=door.closed,
        request_timeout_ms=PATIENCE_MS,
        security_protocol=protocol(door),
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Given(),
        **({"ssl_context": ssl.create_default_context(cafile=door.ca)} if door.ca else {}),
    )
    try:
        await client.start()
        await client.send_and_wait("by-aiokafka", b"x")
    except AiokafkaError:
        return REFUSED
    else:
        return IN
    finally:
        await client.stop()


async def by_our_client(door: Door, text: str) -> str:
    security = Security.of(
        {
            "security.protocol": protocol(door),
            "sasl.mechanism": "OAUTHBEARER",
            "horolog.sasl.oauthbearer.token": text,
            **({"ssl.truststore.type": "PEM", "ssl.truststore.location": door.ca} if door.ca else {}),
        }
    )
    try:
        async with Client(door.closed, security=security) as client:
            await client.metadata([])
    except AuthenticationFailed:
        return REFUSED
    else:
        return IN


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("client", [by_aiokafka, by_our_client], ids=lambda one: one.__name__)
async def test_an_asyncio_client_comes_in_or_does_not(door: Door, client: Callable[..., str], case: str) -> None:
    assert await client(door, token(case)) == CASES[case]


@pytest.mark.parametrize("case", ["good", "by another", "expired"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_program_comes_in_or_does_not(door: Door, scratch: Path, client: str, case: str) -> None:
    arguments = [door.closed, "OAUTHBEARER", "-", token(case), *([door.ca] if door.ca else [])]
    command = [*PROGRAMS[client](scratch), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.partition(":")[0].strip() == CASES[case], done.stdout


@pytest.mark.java
@pytest.mark.parametrize("release", RELEASES)
def test_a_java_client_comes_in_or_does_not(door: Door, tmp_path: Path, release: str) -> None:
    trust = f"ssl.truststore.type=PEM\nssl.truststore.location={door.ca}\n" if door.ca else ""
    settings = [
        f"security.protocol={protocol(door)}\n{trust}sasl.mechanism=OAUTHBEARER\n"
        "sasl.login.callback.handler.class=Login$Given\n"
        f'sasl.jaas.config={MODULE} required token="{token(case)}";\n'
        for case in CASES
    ]
    said = outcomes(release, tmp_path, door.closed, settings)
    assert [line.partition(":")[0] for line in said] == list(CASES.values()), said
    assert all("SaslAuthenticationException" in line for line in said if line != IN), said
