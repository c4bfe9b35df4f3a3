"""What a client presents at a listener: the protocol that follows from it, and no secret in any text."""

import pytest

from horolog.client.security.settings import Sasl, Security, SecurityError, Store, Tls

TLS, SASL = Tls(trusted=Store("ssl.ca.location", "/ca")), Sasl("PLAIN", "alice", "hush")


@pytest.mark.parametrize(
    ("security", "protocol"),
    [
        (Security(), "PLAINTEXT"),
        (Security(tls=TLS), "SSL"),
        (Security(sasl=SASL), "SASL_PLAINTEXT"),
        (Security(TLS, SASL), "SASL_SSL"),
    ],
)
def test_the_protocol_follows_from_what_there_is(security, protocol):
    assert security.protocol == protocol


@pytest.mark.parametrize(
    ("security", "says_who"),
    [
        (Security(), False),
        (Security(tls=TLS), False),
        (Security(sasl=SASL), True),
        (Security(tls=Tls(own=Store("ssl.keystore.location", "/own"))), True),
        (Security(tls=Tls(own_chain="chain", own_key="key")), True),
    ],
)
def test_credentials_or_an_own_certificate_say_who_the_client_is(security, says_who):
    assert security.says_who is says_who


def test_no_text_has_a_secret():
    store = Store("ssl.keystore.location", "/own", password="hush")
    tls = Tls(own=store, own_key="hush", key_password="hush", trusted_pem="hush")
    shown = repr(Security(tls, SASL, {"sasl.password": "hush"}))
    assert "alice" in shown
    assert "hush" not in shown


def test_the_settings_that_it_was_made_from_do_not_make_it_another():
    read = Security.of({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "client.id": "x"} | LOGIN)
    assert read == Security(sasl=Sasl("PLAIN", "alice", "hush"))
    assert read.properties["sasl.username"] == "alice"
    with pytest.raises(SecurityError, match=r"sasl\.mechanism"):
        Security.of({"security.protocol": "SASL_SSL"})


async def test_a_token_comes_from_the_program():
    async def token():
        return "abc"

    read = Security.of({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}, token=token)
    assert await read.sasl.token() == "abc"


LOGIN = {"sasl.username": "alice", "sasl.password": "hush"}
