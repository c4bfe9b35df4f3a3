"""How a broker enters the listener between brokers, by the settings of that listener."""

import pytest

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.security.peer_access import PeerUser, peer_access
from tests.support.certificates import Certificates

MODULES = "org.apache.kafka.common.security"
JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
USER = f'{MODULES}.plain.PlainLoginModule required username="broker" password="secret" user_broker="secret";'
SASL = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    JAAS: USER,
}


def access(static):
    return peer_access(from_layers(Layers(static=static)))


def refusal(static):
    with pytest.raises(SettingsError) as error:
        access(static)
    assert "secret" not in str(error.value)
    return str(error.value)


def test_an_open_listener_asks_for_nothing():
    found = access({"listeners": "PLAINTEXT://127.0.0.1:0"})
    assert (found.listener, found.tls, found.user, found.context()) == ("PLAINTEXT", None, None, None)


def test_the_user_is_that_of_the_listener_s_module():
    user = access(SASL).user
    assert user == PeerUser("PLAIN", "broker", "secret")
    assert "secret" not in repr(user)
    assert next(user.login()) == b"\0broker\0secret"


def test_scram_begins_with_the_name():
    more = {
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": (
            f'{MODULES}.scram.ScramLoginModule required username="broker" password="secret";'
        ),
    }
    assert next(access(SASL | more).user.login()).startswith(b"n,,n=broker,r=")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, "expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"}, "is not among sasl.enabled.mechanisms of SASL_PLAINTEXT"),
        ({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"}, "is required for the login at other brokers"),
        ({JAAS: f'{MODULES}.plain.PlainLoginModule required user_broker="secret";'}, "needs the username and the password"),
        ({"inter.broker.listener.name": "OTHER"}, "no listener has this name"),
    ],
)  # fmt: skip
def test_a_login_that_others_would_refuse_is_refused_at_the_start(more, said):
    assert said in refusal(SASL | more)


def test_the_certificate_and_the_trust_are_those_of_the_listener(tmp_path):
    certificates = Certificates(tmp_path)
    found = access(certificates.settings())
    context = found.context()
    assert context.check_hostname
    assert found.context() is context
    assert "PeerTls of SSL" in repr(found.tls)
    certificates.renew()
    assert found.context() is not context
    assert not access(certificates.settings(ssl_endpoint_identification_algorithm="")).context().check_hostname
    system = certificates.settings()
    del system["ssl.truststore.location"]
    assert access(system).context().check_hostname
    certificates.ca.write_text("no certificate")
    assert "ssl.truststore.location" in refusal(certificates.settings())
