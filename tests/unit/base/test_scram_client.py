"""SCRAM by the examples of its RFCs, and every answer of a server that a client must not believe."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.base import scram_client as module
from horolog.base.scram_client import ServerFault, new_nonce, scram

RFC_7677 = (
    b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)
RFC_5802 = (
    b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
    b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
)


def walk(conversation, *answers):
    """What the client says; ends as the conversation does."""
    said = [next(conversation)]
    for answer in answers:
        try:
            said.append(conversation.send(answer))
        except StopIteration:
            return said, True
    return said, False


@pytest.mark.parametrize(("digest", "vector"), [("sha256", RFC_7677), ("sha1", RFC_5802)])
def test_the_examples_of_the_rfcs(monkeypatch, digest, vector):
    """RFC 5802 has SHA-1, which is not served: its example shows the messages nevertheless."""
    monkeypatch.setitem(module.DIGESTS, "X", digest)
    first, challenge, last, signature = vector
    nonce = first.rpartition(b"r=")[2].decode()
    assert walk(scram("X", "user", "pencil", nonce), challenge, signature) == ([first, last], True)


def server(password, first, digest="sha512", iterations=4096, salt=b"salt"):
    """A server's two answers, by the RFC and independently of the client."""
    bare = first.removeprefix(b"n,,")
    nonce = bare.rpartition(b"r=")[2] + b"server"
    challenge = b"r=%s,s=%s,i=%d" % (nonce, base64.b64encode(salt), iterations)
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    signed = bare + b"," + challenge + b",c=biws,r=" + nonce
    signature = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
    return challenge, b"v=" + base64.b64encode(signature)


@settings(max_examples=20)
@given(
    username=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
    password=st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
def test_any_name_and_password(username, password):
    talk = scram("SCRAM-SHA-512", username, password, "n0nce")
    first = next(talk)
    name = first.decode().removeprefix("n,,n=").rpartition(",r=")[0]
    assert "," not in name
    assert name.replace("=2C", ",").replace("=3D", "=") == username
    challenge, signature = server(password, first)
    talk.send(challenge)
    with pytest.raises(StopIteration):
        talk.send(signature)


def begun():
    talk = scram("SCRAM-SHA-256", "u", "p", "abc")
    next(talk)
    return talk


@pytest.mark.parametrize(
    ("challenge", "said"),
    [
        (b"", "form"),
        (b"hello", "form"),
        (b"\xff\xfe", "not text"),
        (b"r=abcdef,s=c2FsdA==", "form"),
        (b"r=abcdef,s=====,i=4096", "form"),
        (b"m=ext,r=abcdef,s=c2FsdA==,i=4096", "form"),
        (b"r=abc,s=c2FsdA==,i=4096", "nonce"),
        (b"r=xyzabc,s=c2FsdA==,i=4096", "nonce"),
        (b"r=abcdef,s=c2FsdA==,i=4095", "iterations"),
        (b"r=abcdef,s=c2FsdA==,i=1", "iterations"),
        (b"r=abcdef,s=c2FsdA==,i=9999999999", "iterations"),
        (b"r=abcdef,s=c2FsdA==,i=99999999999", "form"),
        (b"r=abcdef,s=c2FsdA==,i=-5", "form"),
    ],
)
def test_first_messages_that_are_not_believed(challenge, said):
    with pytest.raises(ServerFault, match=said):
        begun().send(challenge)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (b"", "form"),
        (b"v=", "form"),
        (b"v=====", "form"),
        (b"v=c2FsdA==", "signature is wrong"),
        (b"e=other-error", "other-error"),
        (b"\xff", "not text"),
    ],
)
def test_last_messages_that_are_not_believed(last, said):
    talk = begun()
    talk.send(b"r=abcdef,s=c2FsdA==,i=4096")
    with pytest.raises(ServerFault, match=said):
        talk.send(last)


def test_a_server_that_knows_another_password_is_not_believed():
    talk = scram("SCRAM-SHA-512", "u", "right", "abc")
    challenge, signature = server("wrong", next(talk))
    talk.send(challenge)
    with pytest.raises(ServerFault, match="signature is wrong"):
        talk.send(signature)


@given(st.binary(max_size=80))
def test_no_bytes_do_worse_than_be_refused(challenge):
    with pytest.raises(ServerFault):
        begun().send(challenge)


def test_nonces_are_never_the_same():
    assert len({new_nonce() for _ in range(100)}) == 100


def test_a_delegation_token_is_named_as_one():
    talk = scram("SCRAM-SHA-512", "id", "hmac", "n0nce", by_token=True)
    first = next(talk)
    assert first == b"n,,n=id,r=n0nce,tokenauth=true"
    bare = first.removeprefix(b"n,,")
    challenge = b"r=n0nceserver,s=c2FsdA==,i=4096"
    salted = hashlib.pbkdf2_hmac("sha512", b"hmac", b"salt", 4096)
    signed = bare + b"," + challenge + b",c=biws,r=n0nceserver"
    signature = hmac.digest(hmac.digest(salted, b"Server Key", "sha512"), signed, "sha512")
    talk.send(challenge)
    with pytest.raises(StopIteration):
        talk.send(b"v=" + base64.b64encode(signature))
