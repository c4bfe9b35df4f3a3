"""Doors out of the settings: each mechanism with what it needs, and a start that ends where something is missing."""

from __future__ import annotations

import importlib.util
import json
from types import SimpleNamespace

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.base.metrics import Metrics
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import load
from horolog.broker.security.sasl import doors as made
from horolog.broker.security.sasl.doors import SaslDoors, Surroundings
from horolog.broker.security.sasl.oauthbearer import OAuthBearer
from horolog.broker.security.sasl.outcome import Challenge, LoggedIn
from horolog.broker.security.sasl.plain import PlainLogin
from horolog.broker.security.sasl.scram import Scram
from horolog.broker.security.sasl.scram_keys import SCRAM_SHA_512, of_password
from horolog.broker.security.users import UserId, rule_of
from tests.support.sasl import Hourglass, ScramPeer, plain_token
from tests.support.tokens import Signer

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
IN = "listener.name.sasl_plaintext."
BASE = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:9093",
    "sasl.enabled.mechanisms": "PLAIN",
    IN + "plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_alice="secret";',
}
URL = IN + "oauthbearer.sasl.oauthbearer.jwks.endpoint.url"


def doors(**changed):
    settings, _ = load(None, {}, {key: text for key, text in {**BASE, **changed}.items() if text is not None})
    glass = Hourglass()
    threads = []
    around = Surroundings(ManualClock(), Metrics(), glass.later, lambda work, done: threads.append(work))
    return SimpleNamespace(made=SaslDoors(settings, around), glass=glass, threads=threads)


def the_door(**changed):
    one = doors(**changed).made.of("SASL_PLAINTEXT")
    assert one is not None
    return one


def refused(**changed):
    with pytest.raises(SettingsError) as why:
        doors(**changed)
    return str(why.value)


def test_a_listener_without_sasl_has_no_door():
    assert doors().made.of("PLAINTEXT") is None
    assert repr(doors().made) == "<SaslDoors of SASL_PLAINTEXT>"
    none = {key: None for key in BASE if key != "listeners"}
    assert repr(doors(**none, listeners="PLAINTEXT://127.0.0.1:0").made) == "<SaslDoors of no listener>"


def test_plain_has_the_users_of_its_jaas_text():
    one = the_door()
    assert isinstance(one.mechanisms["PLAIN"](), PlainLogin)
    assert isinstance(one.mechanisms["PLAIN"]().step(plain_token("alice", "secret")), LoggedIn)
    assert one.max_receive_bytes == 524_288
    assert one.delay_s("192.0.2.1") == 0.1
    assert one.max_reauth_ms == {"PLAIN": 0}


def test_a_listener_and_a_mechanism_have_settings_of_their_own():
    jaas = f'{SCRAM_MODULE} required username="x" password="y";'
    changed = {
        IN + "sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256",
        "sasl.enabled.mechanisms": "GSSAPI",
        "connections.max.reauth.ms": "5000",
        IN + "scram-sha-256.connections.max.reauth.ms": "7000",
        IN + "scram-sha-256.sasl.jaas.config": jaas,
        IN + "sasl.server.max.receive.size": "1000",
        "connection.failed.authentication.delay.ms": "7",
    }
    one = the_door(**changed)
    assert list(one.mechanisms) == ["SCRAM-SHA-512", "SCRAM-SHA-256"]
    assert isinstance(one.mechanisms["SCRAM-SHA-256"](), Scram)
    assert one.max_reauth_ms == {"SCRAM-SHA-512": 5000, "SCRAM-SHA-256": 7000}
    assert one.max_receive_bytes == 1000
    assert one.delay_s("192.0.2.1") == 0.007


def test_scram_goes_by_the_rules_of_the_cluster():
    found = doors(**{"sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN"})
    rule = rule_of(UserId(SCRAM_SHA_512, "ann"), of_password(SCRAM_SHA_512, "pw"))
    found.made.users.take({rule.id: rule})
    mechanism = found.made.of("SASL_PLAINTEXT").mechanisms["SCRAM-SHA-512"]()
    peer = ScramPeer("SCRAM-SHA-512", "ann", "pw")
    challenge = mechanism.step(peer.first())
    assert isinstance(challenge, Challenge)
    assert isinstance(mechanism.step(peer.last(challenge.token)), LoggedIn)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            {"sasl.enabled.mechanisms": None},
            "has the mechanism GSSAPI, which is not supported; use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
        ),
        ({"sasl.enabled.mechanisms": "plain"}, "has the mechanism plain"),
        ({IN + "sasl.enabled.mechanisms": ""}, "SASL_PLAINTEXT needs one of"),
        ({IN + "plain.sasl.jaas.config": None}, "plain.sasl.jaas.config: is required"),
        ({IN + "plain.sasl.jaas.config": f"{PLAIN_MODULE} required"}, "plain.sasl.jaas.config: expected an option"),
        ({IN + "plain.sasl.jaas.config": f"{PLAIN_MODULE} required username=x;"}, "names no user"),
        ({IN + "plain.sasl.jaas.config": f"{SCRAM_MODULE} required user_a=b;"}, "is the login module of PLAIN"),
        (
            {
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                IN + "scram-sha-256.sasl.jaas.config": f"{PLAIN_MODULE} required;",
            },
            "is the login module of SCRAM-SHA-256",
        ),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, f"{URL}: is required"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER", URL: "ftp://x"}, "expected a URL of file, http, https"),
    ],
)
def test_what_lacks_something_ends_the_start(changed, told):
    assert told in refused(**changed)


def test_passwords_stay_out_of_faults():
    for text in ('required user_a="hunter2"', "required user_a=hunter2 hunter2", "hunter2"):
        assert "hunter2" not in refused(**{IN + "plain.sasl.jaas.config": text})


def test_without_its_libraries_oauthbearer_ends_the_start(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(made, "find_spec", lambda name: None if name == "jwt" else real(name))
    assert "pip install 'horolog[oauth]'" in refused(
        **{"sasl.enabled.mechanisms": "OAUTHBEARER", URL: "https://127.0.0.1/keys"}
    )


def test_the_keys_of_tokens_are_read_at_the_start_and_looked_at_again(tmp_path):
    path = tmp_path / "keys"
    oauth = {"sasl.enabled.mechanisms": "OAUTHBEARER", URL: f"file://{path}"}
    assert "cannot be read" in refused(**oauth)
    path.write_text(json.dumps({"keys": [Signer("EC", "e").jwk]}))
    found = doors(**oauth)
    assert isinstance(found.made.of("SASL_PLAINTEXT").mechanisms["OAUTHBEARER"](), OAuthBearer)
    found.made.start()
    assert len(found.threads) == 1
    found.made.stop()
    elsewhere = doors(**{**oauth, URL: "http://127.0.0.1:1/keys"})  # which may come later
    assert elsewhere.threads == []
