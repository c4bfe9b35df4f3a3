"""Which settings ask for protection; a broker that does not give it does not start with them."""

import pytest

from horolog.broker.config import listener_keys
from horolog.broker.config.protection import AUTHORIZERS, asked_by, super_users_of
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import SPECS, load
from horolog.broker.config.settings_sources import kafka_keys

ASKING = [
    ("sasl.kerberos.service.name", "kafka", "GSSAPI"),
    ("listener.name.outside.gssapi.sasl.kerberos.service.name", "kafka", "GSSAPI"),
    ("sasl.jaas.config", 'PlainLoginModule required user_a="p";', "users for all listeners at once"),
    ("plain.sasl.jaas.config", 'PlainLoginModule required user_a="p";', "users for all listeners at once"),
    (
        "listener.name.outside.sasl.jaas.config",
        'PlainLoginModule required user_a="p";',
        "users for all mechanisms at once",
    ),
    ("sasl.oauthbearer.jwt.validator.class", "com.example.Check", "a token validator of its own for a listener"),
    ("principal.builder.class", "com.example.Builder", "authentication"),
    ("delegation.token.master.key", "secret", "the older name of delegation.token.secret.key"),
    ("ssl.engine.factory.class", "com.example.Engines", "encryption"),
    ("ssl.keystore.filename", "server.jks", "encryption"),
    ("listener.name.outside.ssl.engine.factory.class", "com.example.Engines", "encryption"),
    ("client.quota.callback.class", "com.example.Quotas", "quotas"),
]
NOT_ASKING = [
    ("ssl.secure.random.implementation", "SHA1PRNG"),
    ("listener.name.outside.ssl.provider", "BCFIPS"),
    ("sasl.login.callback.handler.class", "com.example.Login"),
    ("sasl.oauthbearer.token.endpoint.url", "https://127.0.0.1/token"),
    ("zookeeper.ssl.client.enable", "true"),
    ("password.encoder.cipher.algorithm", "AES/CBC/PKCS5Padding"),
    ("replication.quota.window.num", "11"),
    ("num.io.threads", "8"),
]


@pytest.mark.parametrize(("key", "value", "protection"), ASKING)
def test_a_broker_that_is_to_be_closed_does_not_start_open(key, value, protection):
    assert asked_by(key, value) == protection
    variable = "KAFKA_" + key.upper().replace("_", "__").replace(".", "_")
    for environ, flags in (({}, {key: value}), ({variable: value}, {})):
        with pytest.raises(SettingsError) as refused:
            load(None, environ, flags)
        assert f"{key}: requires {protection}, which this release does not support" in str(refused.value)


@pytest.mark.parametrize(("key", "value"), NOT_ASKING)
def test_what_asks_for_nothing_is_passed_over(key, value):
    assert asked_by(key, value) is None
    assert len(load(None, {}, {key: value})[1]) == 1


def test_no_secret_is_shown():
    with pytest.raises(SettingsError) as refused:
        load(None, {}, {"sasl.jaas.config": "do not show this"})
    assert "do not show this" not in str(refused.value)


OF_CLIENTS = (
    *("sasl.client.", "sasl.login.", "sasl.mechanism.", "sasl.oauthbearer.assertion.", "sasl.oauthbearer.client."),
    *("sasl.oauthbearer.jwt.retriever.", "sasl.oauthbearer.scope", "sasl.oauthbearer.token.endpoint."),
)
"""How keys begin that say how a broker logs in to others; there are no others here."""


def test_every_key_of_kafka_that_speaks_of_encryption_or_authentication_is_known():
    speaking = sorted(key for key in kafka_keys() if key.startswith(("ssl.", "sasl.")))
    assert len(speaking) > 60
    harmless = []
    for key in speaking:
        served = listener_keys.find(key, SPECS) is not None
        if not (asked_by(key, "x") or served or key.startswith(OF_CLIENTS)):
            harmless.append(key)
    assert harmless == [
        "ssl.keymanager.algorithm",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"authorizer.class.name": "com.example.Authorizer"},
        {"authorizer.class.name": AUTHORIZERS[0], "super.users": "admin"},
        {"super.users": "User:admin"},
        {"allow.everyone.if.no.acl.found": "false"},
    ],
    ids=str,
)
def test_access_lists_that_nobody_would_go_by_end_the_start(given):
    with pytest.raises(SettingsError):
        load(None, {}, given)


@pytest.mark.parametrize("name", AUTHORIZERS)
def test_the_authorizers_of_kafka_are_known(name):
    settings, warnings = load(
        None,
        {},
        {"authorizer.class.name": name, "super.users": "User:a;User:b", "allow.everyone.if.no.acl.found": "false"},
    )
    assert (settings.authorizer_class_name, warnings) == (name, [])
    assert load(None, {}, {"allow.everyone.if.no.acl.found": "true"})[0].allow_everyone_if_no_acl_found


def test_super_users_stand_between_semicolons():
    assert super_users_of(" User:a ;User:b,c;; ") == ["User:a", "User:b,c"]
    assert super_users_of("") == []
