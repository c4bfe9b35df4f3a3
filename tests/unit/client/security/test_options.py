"""Names of Kafka's clients and of librdkafka come to the same settings; unknown ones and half ones are refused, and nothing shows a secret."""

import pickle
from contextlib import suppress
from dataclasses import fields, is_dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.base.properties_file import escape, parse_text
from horolog.client.security import Sasl, Security, SecurityError, Store, Tls
from horolog.client.security.options import NAMES, SECRETS
from horolog.client.security.tokens import GivenToken, TokenCommand, TokenEndpoint, TokenFile, UnsecuredToken
from horolog.client.wire.client import Client

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HUSH = "hush-hush"


def sasl(mechanism, **more):
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism} | more


def test_nothing_is_an_open_listener():
    assert Security.of({}) == Security.of({"security.protocol": "plaintext", "client.id": "x"}) == Security()
    assert Security().protocol == "PLAINTEXT"


def test_plain_by_both_families_of_names():
    java = Security.of(sasl("PLAIN", **{"sasl.jaas.config": f'{PLAIN} required username="u" password="{HUSH}";'}))
    other = Security.of(
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "plain",
            "sasl.username": "u",
            "sasl.password": HUSH,
        }
    )
    assert java == other == Security(sasl=Sasl("PLAIN", "u", HUSH))
    assert java.protocol == "SASL_PLAINTEXT"


def test_tls_by_both_families_of_names():
    java = Security.of({"security.protocol": "SSL", "ssl.truststore.location": "/ca", "ssl.truststore.type": "PEM"})
    other = Security.of({"security.protocol": "SSL", "ssl.ca.location": "/ca"})
    assert java.tls == Tls(trusted=Store("ssl.truststore.location", "/ca", "PEM"))
    assert other.tls == Tls(trusted=Store("ssl.ca.location", "/ca", "PEM"))
    pair = {"ssl.certificate.location": "/c", "ssl.key.location": "/k", "ssl.key.password": HUSH}
    own = Security.of({"security.protocol": "SSL", **pair}).tls
    assert own.own_chain == Store("ssl.certificate.location", "/c", "PEM")
    assert own.own_key == Store("ssl.key.location", "/k", "PEM")
    assert own.key_password == HUSH
    text = {"ssl.keystore.certificate.chain": "C", "ssl.keystore.key": "K", "ssl.truststore.certificates": "T"}
    own = Security.of({"security.protocol": "SSL", **text}).tls
    assert (own.own_chain, own.own_key, own.trusted_pem) == ("C", "K", "T")


@pytest.mark.parametrize(("value", "checks"), [("https", True), ("HTTPS", True), ("", False), ("none", False)])
def test_the_name_of_the_host_is_checked_unless_told_not_to(value, checks):
    tls = Security.of({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": value}).tls
    assert tls.checks_host is checks
    assert tls.checks_certificate


def test_certificates_are_believed_unseen_only_where_it_is_said():
    given = {"security.protocol": "SSL", "enable.ssl.certificate.verification": "false"}
    assert not Security.of(given).tls.checks_certificate


@pytest.mark.parametrize(
    ("given", "versions"),
    [
        ({"ssl.enabled.protocols": "TLSv1.3, TLSv1.2"}, ("TLSv1.3", "TLSv1.2")),
        ({"ssl.enabled.protocols": "TLSv1.3"}, ("TLSv1.3",)),
        ({"ssl.protocol": "TLSv1.2"}, ("TLSv1.2",)),
        ({"ssl.protocol": "TLSv1.3"}, ("TLSv1.2", "TLSv1.3")),
        ({"ssl.protocol": "TLS"}, ()),
    ],
)
def test_versions_of_tls(given, versions):
    assert Security.of({"security.protocol": "SSL", **given}).tls.versions == versions


@pytest.mark.parametrize(
    ("given", "source"),
    [
        ({"horolog.sasl.oauthbearer.token": "abc"}, GivenToken("abc")),
        ({"horolog.sasl.oauthbearer.token.command": "get token"}, TokenCommand("get token")),
        ({"sasl.oauthbearer.token.endpoint.url": "file:///run/token"}, TokenFile("/run/token")),
        (
            {
                "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
                "sasl.jaas.config": f'{BEARER} required clientId="me" clientSecret="{HUSH}" scope="logs";',
                "sasl.login.callback.handler.class": "org.apache.kafka.x.OAuthBearerLoginCallbackHandler",
                "sasl.login.refresh.window.factor": "0.8",
            },
            TokenEndpoint("https://idp/token", "me", HUSH, "logs"),
        ),
        (
            {
                "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "me",
                "sasl.oauthbearer.client.secret": HUSH,
                "sasl.oauthbearer.scope": "logs",
            },
            TokenEndpoint("https://idp/token", "me", HUSH, "logs"),
        ),
        (
            {"sasl.jaas.config": f'{BEARER} required unsecuredLoginStringClaim_sub="me";'},
            UnsecuredToken({"sub": "me"}),
        ),
    ],
)
def test_sources_of_tokens(given, source):
    found = Security.of(sasl("OAUTHBEARER", **given))
    assert found.sasl.token == source
    assert pickle.loads(pickle.dumps(found)) == found


def test_extensions_of_both_families():
    given = sasl(
        "OAUTHBEARER", **{"horolog.sasl.oauthbearer.token": "t", "sasl.oauthbearer.extensions": "pool=a,cluster=b"}
    )
    assert Security.of(given).sasl.extensions == {"pool": "a", "cluster": "b"}
    given = sasl(
        "OAUTHBEARER",
        **{"sasl.jaas.config": f'{BEARER} required unsecuredLoginStringClaim_sub="u" extension_pool="a";'},
    )
    assert Security.of(given).sasl.extensions == {"pool": "a"}


async def test_a_source_that_is_given_as_a_function():
    async def token():
        return "mine"

    found = Security.of(sasl("OAUTHBEARER"), token=token)
    assert await found.sasl.token() == "mine"


OF_TLS = {"security.protocol": "SSL"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"security.protocol": "TLS"}, "one of PLAINTEXT"),
        ({"ssl.ca.location": "/ca"}, "needs security.protocol"),
        ({"sasl.mechanism": "PLAIN"}, "needs security.protocol"),
        ({"ssl.trustore.location": "/ca"}, "do you mean ssl.truststore.location"),
        ({"security.providers": "x"}, "there is no setting"),
        ({"sasl.kerberos.service.name": "x"}, "there is no setting"),
        (
            OF_TLS | {"ssl.keystore.location": "k.jks", "ssl.keystore.type": "jks"},
            "keytool -importkeystore -srckeystore k.jks",
        ),
        (OF_TLS | {"ssl.keystore.location": "k", "ssl.keystore.type": "BKS"}, "PEM or PKCS12"),
        (
            OF_TLS | {"ssl.keystore.location": "k", "ssl.keystore.type": "PEM", "ssl.keystore.password": HUSH},
            "ssl.key.password",
        ),
        (OF_TLS | {"ssl.keystore.key": HUSH}, "give both"),
        (
            OF_TLS | {"ssl.keystore.certificate.chain": "c", "ssl.keystore.key": "k", "ssl.keystore.location": "x"},
            "both given",
        ),
        (OF_TLS | {"ssl.truststore.location": "a", "ssl.ca.location": "b"}, "both given"),
        (OF_TLS | {"ssl.truststore.location": "a", "ssl.ca.pem": "b"}, "both given"),
        (OF_TLS | {"ssl.key.location": "a", "ssl.key.pem": HUSH, "ssl.certificate.pem": "c"}, "given twice"),
        (OF_TLS | {"ssl.enabled.protocols": "TLSv1.1"}, "TLSv1.1 is not supported"),
        (OF_TLS | {"ssl.endpoint.identification.algorithm": "ldap"}, "https"),
        (OF_TLS | {"enable.ssl.certificate.verification": "maybe"}, "true or false"),
        (sasl(""), "sasl.mechanism is missing"),
        (sasl("GSSAPI"), "GSSAPI is not supported"),
        (sasl("PLAIN"), "needs a user name"),
        (sasl("PLAIN", **{"sasl.username": "u"}), "needs a password"),
        (sasl("PLAIN", **{"sasl.jaas.config": f'{SCRAM} required username="u" password="{HUSH}";'}), "not for PLAIN"),
        (sasl("PLAIN", **{"sasl.jaas.config": f'{PLAIN} required password="{HUSH}'}), "sasl.jaas.config"),
        (sasl("OAUTHBEARER"), "no source of tokens"),
        (
            sasl(
                "OAUTHBEARER",
                **{"horolog.sasl.oauthbearer.token": HUSH, "horolog.sasl.oauthbearer.token.command": HUSH},
            ),
            "more than one source",
        ),
        (sasl("OAUTHBEARER", **{"sasl.oauthbearer.token.endpoint.url": "ftp://x/y"}), "http://"),
        (sasl("OAUTHBEARER", **{"sasl.oauthbearer.token.endpoint.url": "https://x/y"}), "clientId"),
        (sasl("OAUTHBEARER", **{"sasl.login.callback.handler.class": "a.b.Mine"}), "Mine is not supported"),
        (
            sasl("OAUTHBEARER", **{"sasl.jaas.config": f'{BEARER} required unsecuredLoginNumberClaim_n="{HUSH}";'}),
            "a number",
        ),
        (
            sasl("OAUTHBEARER", **{"sasl.jaas.config": f'{BEARER} required unsecuredLoginStringClaim_x="y";'}),
            "Claim_sub",
        ),
        (
            sasl("OAUTHBEARER", **{"horolog.sasl.oauthbearer.token": "t", "sasl.oauthbearer.extensions": "auth=x"}),
            "not an extension",
        ),
    ],
)
def test_what_is_refused_says_why_and_no_secret(given, said):
    with pytest.raises(SecurityError) as caught:
        Security.of(given)
    assert said in str(caught.value)
    assert HUSH not in str(caught.value)


def test_a_source_of_tokens_is_for_tokens_and_for_sasl():
    async def token():
        return ""

    with pytest.raises(SecurityError, match="the mechanism OAUTHBEARER"):
        Security.of(sasl("PLAIN"), token=token)
    with pytest.raises(SecurityError, match=r"a source of tokens needs security\.protocol"):
        Security.of({}, token=token)


def everything_in(value):
    """All representations, of the whole and of its parts."""
    yield repr(value)
    yield str(value)
    if is_dataclass(value):
        for field in fields(value):
            if field.repr:
                yield from everything_in(getattr(value, field.name))


def test_no_secret_is_in_a_representation():
    everything = [
        sasl("PLAIN", **{"sasl.username": "u", "sasl.password": HUSH}),
        sasl("SCRAM-SHA-512", **{"sasl.jaas.config": f'{SCRAM} required username="u" password="{HUSH}";'}),
        sasl("OAUTHBEARER", **{"horolog.sasl.oauthbearer.token": HUSH}),
        OF_TLS | {"ssl.keystore.certificate.chain": "c", "ssl.keystore.key": HUSH, "ssl.key.password": HUSH},
        OF_TLS
        | {
            "ssl.truststore.location": "a",
            "ssl.truststore.password": HUSH,
            "ssl.keystore.location": "k",
            "ssl.keystore.password": HUSH,
        },
    ]
    for each in everything:
        found = Security.of(each)
        client = Client("localhost:1", security=found)
        assert HUSH not in "".join([*everything_in(found), repr(client), repr(client.channels)])
        assert HUSH in str(dict(found.properties))
    source = TokenEndpoint("http://x", "id", HUSH)
    assert HUSH not in repr(source) + repr(GivenToken(HUSH)) + repr(TokenCommand(HUSH))


def test_every_secret_is_a_name():
    assert SECRETS < NAMES


async def test_a_client_takes_a_mapping_too():
    with pytest.raises(SecurityError):
        Client("localhost:1", security={"ssl.ca.location": "x"})
    assert Client("localhost:1", security={"security.protocol": "PLAINTEXT"}).channels._login is None


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(username=texts, password=texts)
def test_whatever_a_file_says_is_what_is_meant(username, password):
    """From a file of properties to the settings, with every character that a file can hold."""
    file = "".join(
        f"{key}={escape(value)}\n"
        for key, value in sasl("PLAIN", **{"sasl.username": username, "sasl.password": password}).items()
    )
    found = Security.of(parse_text(file)).sasl
    assert (found.username, found.password) == (username, password)


@given(
    st.dictionaries(
        st.sampled_from(sorted(NAMES)), st.text(max_size=8) | st.sampled_from(["SSL", "SASL_SSL", "PLAIN", "true"])
    )
)
def test_no_settings_do_worse_than_be_refused(given_names):
    with suppress(SecurityError):
        assert isinstance(Security.of(given_names), Security)


@pytest.mark.parametrize(("given", "by_token"), [("true", True), ("TRUE", True), ("false", False)])
def test_a_delegation_token_in_place_of_a_user(given, by_token):
    line = f'{SCRAM} required username="id" password="{HUSH}" tokenauth="{given}";'
    found = Security.of(sasl("SCRAM-SHA-256", **{"sasl.jaas.config": line})).sasl
    assert (found.username, found.by_token) == ("id", by_token)
