"""The same dialogue about delegation tokens on horolog, alone and on two workers, and on a real Kafka: tools, clients, same results."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks import kafka
from horolog import Client
from horolog.client.security import Security
from horolog.client.values.errors import KafkaError
from horolog.protocol.messages.delegation_tokens import CreateDelegationTokenRequest
from tests.interop.java_logins import outcomes
from tests.interop.toolchains import go_program
from tests.support.sasl_brokers import MODULES, PASSWORD, Door, horolog, real_kafka

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]

RELEASE = "4.3.1"
TOOL = "org.apache.kafka.tools.DelegationTokenCommand"
SERVED = {"delegation.token.secret.key": "a secret of the cluster"}


@pytest.fixture(scope="module", params=["horolog", "two workers", "kafka"])
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    folder = tmp_path_factory.mktemp("tokens")
    if request.param == "kafka":
        with real_kafka(RELEASE, folder / "kafka", **SERVED) as found:
            yield found
        return
    more = {"horolog.workers": "2"} if request.param == "two workers" else {}
    with horolog(folder / "data", **SERVED, **more) as (found, _):
        yield found


def settings(user: str, password: str, *, mechanism: str = "PLAIN", token: bool = False) -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    line = f'{MODULES}.{module} required username="{user}" password="{password}"'
    by_token = ' tokenauth="true"' if token else ""
    return f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={line}{by_token};\n"


@pytest.fixture
def tool(door: Door, tmp_path: Path) -> Callable[..., str]:
    """Runs Kafka's tool as alice; what it prints."""
    jars = kafka.libs(RELEASE)
    config = tmp_path / "alice.properties"
    config.write_text(settings("alice", PASSWORD))

    def run(*arguments: str) -> str:
        java = ["java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{jars}/*", TOOL]
        common = ["--bootstrap-server", door.closed, "--command-config", str(config)]
        done = subprocess.run([*java, *common, *arguments], capture_output=True, text=True, timeout=90, check=False)
        return done.stdout + done.stderr

    return run


def output_of(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


async def new_token(door: Door) -> tuple[str, str]:
    """The id and the password of a token of alice."""
    alice = Security.of(dict(line.split("=", 1) for line in settings("alice", PASSWORD).splitlines()))
    async with Client(door.closed, security=alice) as client:
        made = await client.request(CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=60_000))
        return made.token_id, base64.b64encode(made.hmac).decode()


@pytest.mark.long
@pytest.mark.go
async def test_franz_go_logs_in_by_a_token(door: Door, tmp_path: Path) -> None:
    token_id, password = await new_token(door)
    await comes_in(door, token_id, password, "SCRAM-SHA-256")
    program = [*go_program("login")(tmp_path), "franz-go", door.closed, "SCRAM-SHA-256 by token", token_id]
    for word, outcome in ((password, "in"), ("A" * 88, "refused")):
        assert output_of([*program, word]).startswith(outcome)


@pytest.mark.long
def test_a_token_from_its_making_to_its_end(door: Door, tool: Callable[..., str], tmp_path: Path) -> None:
    made = tool("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    found = re.search(r"^(\S{22})\s+(\S{88})\s+User:alice\s+User:alice\s+\[User:bob\]", made, re.MULTILINE)
    assert found, made
    token_id, hmac = found.groups()
    cases = [
        settings(token_id, hmac, mechanism="SCRAM-SHA-256", token=True),
        settings(token_id, hmac, mechanism="SCRAM-SHA-512", token=True),
        settings(token_id, hmac, mechanism="SCRAM-SHA-256"),
        settings(token_id, "A" * 88, mechanism="SCRAM-SHA-256", token=True),
        settings("A" * 22, hmac, mechanism="SCRAM-SHA-256", token=True),
    ]
    said = outcomes(RELEASE, tmp_path, door.closed, cases)
    assert [line.partition(":")[0] for line in said] == ["in", "in", "refused", "refused", "refused"]
    assert token_id in tool("--describe", "--owner-principal", "User:alice")
    assert "Completed renew operation" in tool("--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert "DelegationTokenNotFoundException" in tool("--renew", "--renew-time-period", "-1", "--hmac", "AAAA")
    assert "Completed expire operation" in tool("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert token_id not in tool("--describe", "--owner-principal", "User:alice")
    (last,) = outcomes(RELEASE, tmp_path, door.closed, cases[:1])
    assert last.startswith("refused: ")


@pytest.mark.long
async def test_our_client_logs_in_by_a_token(door: Door) -> None:
    token_id, password = await new_token(door)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        await comes_in(door, token_id, password, mechanism)


async def comes_in(door: Door, token_id: str, password: str, mechanism: str) -> None:
    """Real brokers know of a new token a moment later."""
    text = settings(token_id, password, mechanism=mechanism, token=True)
    security = Security.of(dict(line.split("=", 1) for line in text.splitlines()))
    for left in range(50, -1, -1):
        try:
            async with Client(door.closed, security=security) as client:
                await client.versions()
        except KafkaError:
            if not left:
                raise
        else:
            return
