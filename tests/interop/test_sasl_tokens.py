"""OAUTHBEARER with signed tokens: clients that have a good one come in, and nobody else."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.test_sasl import lists_topics
from tests.support.sasl_brokers import LISTENER, MODULES, Door, horolog
from tests.support.tokens import Signer

pytestmark = pytest.mark.timeout(120)
SIGNER, OTHER = Signer("RSA", "k"), Signer("RSA", "k")
OAUTH = f"{LISTENER}oauthbearer."
AUDIENCE = "horolog"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Door, Path]]:
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "keys").write_text(json.dumps({"keys": [SIGNER.jwk]}))
    more = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{OAUTH}sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        f"{OAUTH}sasl.oauthbearer.jwks.endpoint.url": f"file://{folder}/keys",
        f"{OAUTH}sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    with horolog(folder / "data", **more) as (found, _):
        yield found, folder / "keys"


def claims(**others: object) -> dict[str, object]:
    now = int(time.time())
    return {"sub": "ann", "iat": now, "exp": now + 600, "aud": AUDIENCE, **others}


def comes_in(address: str, token: str) -> bool:
    said: list[str] = []
    client = AdminClient(
        {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (token, time.time() + 600),
            "error_cb": lambda error: said.append(error.name()),
            "log_level": 0,
        }
    )
    client.poll(0.5)
    came_in = lists_topics(client, lambda: "_AUTHENTICATION" in said)
    assert came_in or "_AUTHENTICATION" in said, said
    return came_in


def test_a_good_token_lets_in(door: tuple[Door, Path]) -> None:
    assert comes_in(door[0].closed, SIGNER.sign(claims(), "RS256"))
    assert comes_in(door[0].closed, SIGNER.sign(claims(aud=["x", AUDIENCE]), "PS384"))


def test_no_other_does(door: tuple[Door, Path]) -> None:
    old = int(time.time()) - 100
    for token in (
        OTHER.sign(claims(), "RS256"),
        SIGNER.sign(claims(exp=old), "RS256"),
        SIGNER.sign(claims(aud="other"), "RS256"),
        SIGNER.sign_by_public_key(claims()),
    ):
        assert not comes_in(door[0].closed, token)
