"""What a stranger sends to get in: byte 0 picks what reads the rest, in messages that a zero byte and a one part: SCRAM, PLAIN, OAUTHBEARER, a
token, a JAAS text.

Nobody gets in by it, and whatever is refused is refused in few words.
"""

from __future__ import annotations

from collections.abc import Callable

from horolog.base import jaas
from horolog.broker.security.sasl import scram_keys
from horolog.broker.security.sasl.jwks import Jwks, JwksFault, parse
from horolog.broker.security.sasl.oauthbearer import OAuthBearer, TokenRefused
from horolog.broker.security.sasl.outcome import Challenge, Failed, LoggedIn, Mechanism
from horolog.broker.security.sasl.plain import PlainLogin, PlainUsers
from horolog.broker.security.sasl.scram import Scram
from horolog.broker.security.sasl.scram_keys import KINDS
from horolog.broker.security.sasl.tokens import Expected, TokenReader
from tests.fuzz.targets import place

PARTING = b"\0\1"
MOST_WORDS = 600
KEYS = {name: scram_keys.of_password(kind, "a password that nobody guesses") for name, kind in KINDS.items()}


def login(mechanism: Mechanism, data: bytes) -> object:
    outcomes = []
    for message in data.split(PARTING)[:4]:
        outcome = mechanism.step(message)
        assert not isinstance(outcome, LoggedIn), "nobody has a password"
        outcomes.append(type(outcome).__name__ + (outcome.reason[:20] if isinstance(outcome, Failed) else ""))
        if isinstance(outcome, Failed):
            assert len(outcome.reason) < len(data) + MOST_WORDS
            break
        assert isinstance(outcome, Challenge)
    return tuple(outcomes)


def _in_few_words(refused: Exception) -> str:
    assert len(str(refused)) < MOST_WORDS
    return str(refused)


def scram(data: bytes) -> object:
    name = list(KINDS)[len(data) % len(KINDS)]
    return login(Scram(KINDS[name], lambda user: KEYS[name] if user == "alice" else None, b"secret"), data)


def plain(data: bytes) -> object:
    return login(PlainLogin(PlainUsers({"alice": "a password that nobody guesses"})), data)


def oauthbearer(data: bytes) -> object:
    return login(OAuthBearer(TokenReader(Jwks("", 1, 1, 1), Expected())), data)


def token(data: bytes) -> object:
    try:
        TokenReader(Jwks("", 1, 1, 1), Expected())(data.decode("latin-1"))
    except TokenRefused as refused:
        return _in_few_words(refused)[:20]
    raise AssertionError("there is no key that could have signed it")


def key_set(data: bytes) -> object:
    try:
        return len(parse(data))
    except JwksFault as fault:
        return place(fault)


def text(data: bytes) -> object:
    try:
        return len(jaas.parse(data.decode("utf-8", "replace")).options)
    except jaas.JaasError as error:
        return _in_few_words(error) and place(error)


WAYS: tuple[Callable[[bytes], object], ...] = (scram, plain, oauthbearer, token, key_set, text)


def target(data: bytes) -> object:
    if not data:
        return None
    number = data[0] % len(WAYS)
    return number, WAYS[number](data[1:])
