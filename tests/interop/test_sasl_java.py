"""Java clients of several releases come in by SASL or do not, with TLS below and without, on horolog and on a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.java_logins import RELEASES, outcomes
from tests.interop.test_sasl import CASES, DOORS, opened
from tests.support.sasl_brokers import MODULES, Door

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", params=DOORS)
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with opened(request.param, tmp_path_factory.mktemp("java")) as found:
        yield found


def settings(door: Door, mechanism: str | None, user: str, password: str) -> str:
    protocol = f"{'SASL_' if mechanism else ''}{'SSL' if door.ca else 'PLAINTEXT'}"
    text = f"security.protocol={protocol}\n"
    if door.ca:
        text += f"ssl.truststore.type=PEM\nssl.truststore.location={door.ca}\n"
    if mechanism is not None:
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        text += f"sasl.mechanism={mechanism}\n"
        text += f'sasl.jaas.config={MODULES}.{module} required username="{user}" password="{password}";\n'
    return text


@pytest.mark.long
@pytest.mark.parametrize("release", RELEASES)
def test_a_client_comes_in_or_does_not(door: Door, tmp_path: Path, release: str) -> None:
    cases = [case.values for case in CASES]
    said = outcomes(
        release,
        tmp_path,
        door.closed,
        [settings(door, mechanism, user, password) for mechanism, user, password, _ in cases],
    )
    assert [line.partition(":")[0] for line in said] == [outcome for *_, outcome in cases]
    refused = [line for line, (mechanism, *_) in zip(said, cases, strict=True) if mechanism and line != "in"]
    assert all("SaslAuthenticationException: Authentication failed" in line for line in refused), refused
