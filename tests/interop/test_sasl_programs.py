"""Clients in Go and JavaScript come in by SASL or do not, with TLS below and without: franz-go, sarama and kafkajs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.test_sasl import CASES, add_alice
from tests.interop.toolchains import go_program, node_program
from tests.support.certificates import Certificates
from tests.support.sasl_brokers import Door, horolog, tls_below

pytestmark = pytest.mark.timeout(300)
PROGRAMS = {
    "franz-go": go_program("login", "franz-go"),
    "sarama": go_program("login", "sarama"),
    "kafkajs": node_program("login.js", "kafkajs"),
}
CLIENTS = [
    pytest.param("franz-go", marks=pytest.mark.go),
    pytest.param("sarama", marks=pytest.mark.go),
    pytest.param("kafkajs", marks=pytest.mark.node),
]


@pytest.fixture(scope="module", params=["plaintext", "tls"])
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    folder = tmp_path_factory.mktemp("programs")
    certificates = Certificates(folder)
    has_tls = request.param == "tls"
    with horolog(folder / "data", **(tls_below(certificates) if has_tls else {})) as (found, _):
        add_alice(found.open)
        yield found._replace(ca=str(certificates.ca) if has_tls else "")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("built")


@pytest.mark.parametrize(("mechanism", "user", "password", "outcome"), CASES)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_program_comes_in_or_does_not(
    door: Door, scratch: Path, client: str, mechanism: str | None, user: str, password: str, outcome: str
) -> None:
    if client == "sarama" and mechanism not in {None, "PLAIN"}:
        pytest.skip("sarama leaves SCRAM to a library of its user's")
    command = PROGRAMS[client](scratch)
    arguments = [door.closed, mechanism or "-", user, password, *([door.ca] if door.ca else [])]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.partition(":")[0].strip() == outcome, done.stdout
