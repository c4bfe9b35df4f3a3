"""Messages of SASL that were changed on their way never let anybody in, and texts of JAAS are read as they were written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from horolog.base.jaas import JaasError, parse
from horolog.broker.security.sasl import scram_keys
from horolog.broker.security.sasl.oauthbearer import OAuthBearer, TokenRefused
from horolog.broker.security.sasl.outcome import Challenge, Failed, LoggedIn
from horolog.broker.security.sasl.plain import PlainLogin, PlainUsers
from horolog.broker.security.sasl.scram import Scram
from horolog.broker.security.sasl.scram_keys import SCRAM_SHA_256
from tests.support.sasl import ScramPeer

KEYS = scram_keys.of_password(SCRAM_SHA_256, "secret", 4096)
SECRET = b"s" * 32
NAMES = st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1, max_size=20)
PASSWORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


def server(name: str = "alice") -> Scram:
    return Scram(SCRAM_SHA_256, {name: KEYS}.get, SECRET)


def changed(data: bytes, at: int, to: int) -> bytes:
    at %= len(data)
    return data[:at] + bytes([to]) + data[at + 1 :]


@given(NAMES)
def test_every_name_of_ascii_comes_in(name: str) -> None:
    peer, one = ScramPeer("SCRAM-SHA-256", name, "secret"), server(name)
    challenge = one.step(peer.first())
    assert isinstance(challenge, Challenge)
    done = one.step(peer.last(challenge.token))
    assert isinstance(done, LoggedIn)
    assert done.principal.name == name
    assert peer.believes(done.token)


@given(st.integers(0, 200), st.integers(0, 255))
def test_a_final_message_that_was_changed_lets_nobody_in(at: int, to: int) -> None:
    peer, one = ScramPeer("SCRAM-SHA-256", "alice", "secret"), server()
    challenge = one.step(peer.first())
    assert isinstance(challenge, Challenge)
    last = peer.last(challenge.token)
    sent = changed(last, at, to)
    assert isinstance(one.step(sent), LoggedIn if sent == last else Failed)


@given(st.integers(0, 200), st.integers(0, 255))
def test_a_first_message_that_was_changed_lets_nobody_in(at: int, to: int) -> None:
    peer, one = ScramPeer("SCRAM-SHA-256", "alice", "secret"), server()
    first = peer.first()
    sent = changed(first, at, to)
    challenge = one.step(sent)
    if sent == first or not isinstance(challenge, Challenge):
        return
    said = challenge.token.decode()
    if not said.startswith(f"r={peer.nonce}"):
        return
    assert isinstance(one.step(peer.last(challenge.token)), Failed)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_anything_at_all_is_answered_or_refused(first: bytes, second: bytes) -> None:
    def read(_: str) -> None:
        raise TokenRefused("no")

    for one in (server(), PlainLogin(PlainUsers({"alice": "secret"})), OAuthBearer(read)):  # type: ignore[arg-type]
        outcome = one.step(first)
        assert isinstance(outcome, Challenge | Failed)
        if isinstance(outcome, Challenge):
            assert isinstance(one.step(second), Failed)


@given(PASSWORDS, PASSWORDS)
def test_one_password_fits(password: str, other: str) -> None:
    users = PlainUsers({"alice": password})
    assert users.has("alice", password)
    assert users.has("alice", other) is (other == password)
    assert not users.has("bob", password)


def quoted(text: str) -> str:
    return '"' + "".join(f"\\{one}" if one in '"\\' else {"\n": "\\n", "\r": "\\r"}.get(one, one) for one in text) + '"'


@given(st.dictionaries(st.from_regex(r"user_[a-z]{1,8}", fullmatch=True), PASSWORDS, max_size=5))
def test_a_jaas_text_is_read_as_it_was_written(users: dict[str, str]) -> None:
    text = " ".join(f"{name}={quoted(password)}" for name, password in users.items())
    assert parse(f"x.y.Module required {text} ;").options == users


@given(st.text(st.sampled_from("ab =;\"'\\/*\n\t.-7$é"), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for whole in (text, f"Module required {text}", f"Module required {text};"):
        try:
            assert parse(whole).name
        except JaasError as error:
            assert len(str(error)) < 200  # noqa: PT017 - that it is raised is no must
