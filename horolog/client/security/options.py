"""Reads the security settings of Kafka's clients and of librdkafka: each is used or refused; none is ignored."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final

from horolog.base import jaas
from horolog.base.scram_client import DIGESTS
from horolog.client.security import tokens
from horolog.client.security.settings import Sasl, Security, SecurityError, Store, Tls, TokenSource

PROTOCOL: Final = "security.protocol"
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", *DIGESTS, "OAUTHBEARER")
PREFIXES: Final = ("security.", "ssl.", "sasl.", "enable.ssl.", "enable.sasl.", "horolog.sasl.")
"""A name with such a prefix is about security, and must be known."""

KINDS: Final = ("PEM", "PKCS12")
JKS_ADVICE: Final = (
    "only Java can read a Java key store; convert it with "
    "keytool -importkeystore -srckeystore {file} -destkeystore {file}.p12 -deststoretype PKCS12"
)
_TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
_LOGIN_MODULES: Final = {"PLAIN": "PlainLoginModule", "OAUTHBEARER": "OAuthBearerLoginModule"} | dict.fromkeys(
    DIGESTS, "ScramLoginModule"
)
_HANDLERS: Final = ("OAuthBearerLoginCallbackHandler", "OAuthBearerUnsecuredLoginCallbackHandler")

_STORES: Final = {
    f"ssl.{store}.{part}" for store in ("truststore", "keystore") for part in ("location", "password", "type")
}
_OF_TLS: Final = frozenset(
    {
        *_STORES,
        "ssl.truststore.certificates",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        "ssl.enabled.protocols",
        "ssl.protocol",
        "ssl.cipher.suites",
        # librdkafka
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.key.location",
        "ssl.key.pem",
        "enable.ssl.certificate.verification",
    }
)
_OF_SASL: Final = frozenset(
    {
        "sasl.mechanism",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "horolog.sasl.oauthbearer.token",
        "horolog.sasl.oauthbearer.token.command",
        # librdkafka
        "sasl.mechanisms",
        "sasl.username",
        "sasl.password",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.extensions",
    }
)
_NO_EFFECT: Final = frozenset(
    {
        *(f"sasl.login.refresh.{part}" for part in ("buffer.seconds", "min.period.seconds", "window.factor")),
        "sasl.login.refresh.window.jitter",
        *(f"sasl.login.retry.backoff.{part}" for part in ("ms", "max.ms")),
        *(f"sasl.login.{part}.timeout.ms" for part in ("connect", "read")),
    }
)
"""They tune how Java renews its tokens; here a token is fetched when a login needs it."""
NAMES: Final = frozenset({PROTOCOL}) | _OF_TLS | _OF_SASL | _NO_EFFECT
SECRETS: Final = frozenset(
    {
        "ssl.truststore.password",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl.key.pem",
        "sasl.jaas.config",
        "sasl.password",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
        "horolog.sasl.oauthbearer.token",
        "horolog.sasl.oauthbearer.token.command",
    }
)


def is_of_security(name: str) -> bool:
    return name.startswith(PREFIXES)


def read(properties: Mapping[str, str], token: TokenSource | None = None) -> Security:
    """The parsed settings; raises SecurityError."""
    given = {name: str(value) for name, value in properties.items() if is_of_security(name)}
    for name in given:
        if name not in NAMES:
            raise SecurityError(_unknown(name))
    needs_protocol = sorted(given.keys() & (_OF_TLS | _OF_SASL))
    if PROTOCOL not in given and (needs_protocol or token is not None):
        reason = needs_protocol[0] if needs_protocol else "a source of tokens"
        raise SecurityError(f"{reason} needs {PROTOCOL}: expected one of {', '.join(PROTOCOLS[1:])}")
    protocol = given.get(PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise SecurityError(f"{PROTOCOL}={given[PROTOCOL]}: expected one of {', '.join(PROTOCOLS)}")
    return Security(
        _tls(given) if protocol.endswith("SSL") else None,
        _sasl(given, token) if protocol.startswith("SASL") else None,
        given,
    )


def _unknown(name: str) -> str:
    close = get_close_matches(name, NAMES, n=1, cutoff=0.8)
    return f"there is no setting {name}{f'; do you mean {close[0]}?' if close else ''}"


# -- TLS


def _tls(given: Mapping[str, str]) -> Tls:
    trusted, own = _store(given, "truststore"), _store(given, "keystore")
    if given.get("ssl.ca.location"):
        trusted = _only_one(given, "ssl.ca.location", trusted)
    if given.get("ssl.truststore.certificates") or given.get("ssl.ca.pem"):
        _no_store("certificates of authorities", trusted)
    chain = _text_or_file(given, ("ssl.keystore.certificate.chain", "ssl.certificate.pem"), "ssl.certificate.location")
    key = _text_or_file(given, ("ssl.keystore.key", "ssl.key.pem"), "ssl.key.location")
    if (chain is None) != (key is None):
        raise SecurityError("a certificate needs its key, and a key its certificate: give both")
    if chain is not None:
        _no_store("a certificate", own)
    algorithm = given.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in {"https", "", "none"}:
        raise SecurityError(f"ssl.endpoint.identification.algorithm={algorithm}: expected https, or nothing")
    return Tls(
        trusted=trusted,
        trusted_pem=given.get("ssl.truststore.certificates") or given.get("ssl.ca.pem") or None,
        own=own,
        own_chain=chain,
        own_key=key,
        key_password=given.get("ssl.key.password") or None,
        versions=_versions(given),
        cipher_suites=tuple(re.findall(r"[^\s,:]+", given.get("ssl.cipher.suites", ""))),
        checks_host=algorithm == "https",
        checks_certificate=_flag(given, "enable.ssl.certificate.verification"),
    )


def _store(given: Mapping[str, str], which: str) -> Store | None:
    name = f"ssl.{which}.location"
    location = given.get(name)
    if not location:
        return None
    kind = (given.get(f"ssl.{which}.type") or "").upper() or None
    if kind == "JKS":
        raise SecurityError(f"{name}: {JKS_ADVICE.format(file=location)}")
    if kind not in {None, *KINDS}:
        raise SecurityError(f"ssl.{which}.type={kind}: expected {' or '.join(KINDS)}")
    password = given.get(f"ssl.{which}.password") or None
    if kind == "PEM" and password is not None:
        raise SecurityError(f"ssl.{which}.password: PEM has none; ssl.key.password is the password of a key")
    return Store(name, location, kind, password)


def _only_one(given: Mapping[str, str], name: str, other: Store | None) -> Store:
    _no_store(name, other)
    return Store(name, given[name], "PEM")


def _no_store(what: str, store: Store | None) -> None:
    if store is not None:
        raise SecurityError(f"{what} and {store.name} are both given; give only one of them")


def _text_or_file(given: Mapping[str, str], texts: tuple[str, ...], file: str) -> str | Store | None:
    found = [given[name] for name in texts if given.get(name)]
    if given.get(file):
        if found:
            raise SecurityError(f"{file} is given twice: as a file and as text")
        return Store(file, given[file], "PEM")
    return found[0] if found else None


def _versions(given: Mapping[str, str]) -> tuple[str, ...]:
    name = "ssl.enabled.protocols" if given.get("ssl.enabled.protocols") else "ssl.protocol"
    wanted = [one.strip() for one in given.get(name, "").split(",") if one.strip()]
    if wanted in ([], ["TLS"]):
        return ()
    for one in wanted:
        if one not in _TLS_VERSIONS:
            raise SecurityError(f"{name}: {one} is not supported; use {' or '.join(_TLS_VERSIONS)}")
    # In Java `ssl.protocol` is the newest version spoken.
    return tuple(_TLS_VERSIONS[: _TLS_VERSIONS.index(wanted[0]) + 1]) if name == "ssl.protocol" else tuple(wanted)


def _flag(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "true").strip().lower()
    if text not in {"true", "false"}:
        raise SecurityError(f"{name}={text}: expected true or false")
    return text == "true"


# -- SASL


def _sasl(given: Mapping[str, str], token: TokenSource | None) -> Sasl:
    mechanism = (given.get("sasl.mechanism") or given.get("sasl.mechanisms") or "").strip().upper()
    if mechanism not in MECHANISMS:
        said = f"sasl.mechanism={mechanism} is not supported" if mechanism else "sasl.mechanism is missing"
        raise SecurityError(f"{said}: expected one of {', '.join(MECHANISMS)}")
    options = _login_options(given, mechanism)
    if mechanism == "OAUTHBEARER":
        return Sasl(mechanism, token=token or _token(given, options), extensions=_extensions(given, options))
    if token is not None:
        raise SecurityError(f"a token source needs the mechanism OAUTHBEARER, not {mechanism}")
    username = options.get("username", given.get("sasl.username"))
    password = options.get("password", given.get("sasl.password"))
    if username is None or password is None:
        missing = "user name" if username is None else "password"
        raise SecurityError(f"{mechanism} needs a {missing}: sasl.jaas.config, or sasl.username and sasl.password")
    return Sasl(mechanism, username, password, by_token=options.get("tokenauth", "").lower() == "true")


def _login_options(given: Mapping[str, str], mechanism: str) -> Mapping[str, str]:
    text = given.get("sasl.jaas.config")
    if not text:
        return {}
    try:
        module = jaas.parse(text)
    except jaas.JaasError as error:
        raise SecurityError(f"sasl.jaas.config: {error}") from error
    expected = _LOGIN_MODULES[mechanism]
    if module.name.rpartition(".")[2] != expected:
        raise SecurityError(f"sasl.jaas.config: {module.name} is not for {mechanism}; use {expected}")
    return module.options


def _extensions(given: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    found = {name[len("extension_") :]: value for name, value in options.items() if name.startswith("extension_")}
    for part in given.get("sasl.oauthbearer.extensions", "").split(","):
        name, sign, value = part.strip().partition("=")
        if sign:
            found[name] = value
    for name, value in found.items():
        if name == "auth" or not name.isalpha() or not value.isprintable():
            raise SecurityError(
                f"{name!r} is not an extension of OAUTHBEARER: expected letters, and a value that can be printed"
            )
    return found


def _token(given: Mapping[str, str], options: Mapping[str, str]) -> TokenSource:
    """The one token source that the settings name."""
    sources: list[TokenSource] = []
    handler = given.get("sasl.login.callback.handler.class", "").rpartition(".")[2]
    if handler and handler not in _HANDLERS:
        raise SecurityError(
            f"sasl.login.callback.handler.class: {handler} is not supported; use {' or '.join(_HANDLERS)}"
        )
    makers: dict[str, Callable[[str], TokenSource]] = {
        "horolog.sasl.oauthbearer.token": tokens.GivenToken,
        "horolog.sasl.oauthbearer.token.command": tokens.TokenCommand,
        "sasl.oauthbearer.token.endpoint.url": lambda url: _from_url(url, given, options),
    }
    sources += [make(given[name]) for name, make in makers.items() if given.get(name)]
    if any(name.startswith("unsecuredLogin") for name in options):
        sources.append(tokens.unsecured(options))
    if len(sources) != 1:
        how = "more than one source of tokens is" if sources else "no source of tokens is"
        raise SecurityError(f"OAUTHBEARER: {how} given; give one of {', '.join(makers)}")
    return sources[0]


def _from_url(url: str, given: Mapping[str, str], options: Mapping[str, str]) -> TokenSource:
    scheme, sign, rest = url.partition("://")
    if scheme == "file" and sign:
        return tokens.TokenFile(rest)
    if scheme not in {"http", "https"} or not rest:
        raise SecurityError("sasl.oauthbearer.token.endpoint.url: expected http://, https:// or file://")

    def first(name: str, *others: str) -> str:
        return options.get(name) or next((given[other] for other in others if given.get(other)), "")

    client_id = first(
        "clientId", "sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id", "sasl.username"
    )
    secret = first(
        "clientSecret",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
        "sasl.password",
    )
    if not client_id or not secret:
        raise SecurityError("sasl.oauthbearer.token.endpoint.url needs clientId and clientSecret in sasl.jaas.config")
    return tokens.TokenEndpoint(url, client_id, secret, first("scope", "sasl.oauthbearer.scope"))
