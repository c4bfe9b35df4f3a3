"""The messages of PLAIN and OAUTHBEARER, and names and tokens that they cannot carry."""

import pytest

from horolog.base.scram_client import ServerFault
from horolog.client.security import SecurityError
from horolog.client.security.mechanisms import bearer, conversation_of, plain
from horolog.client.security.settings import Sasl
from horolog.client.security.tokens import GivenToken


def test_plain():
    talk = plain("älice", "p w")
    assert next(talk) == "\0älice\0p w".encode()
    with pytest.raises(StopIteration):
        talk.send(b"")


@pytest.mark.parametrize(("username", "password"), [("a\0b", "p"), ("a", "p\0")])
def test_a_nul_would_part_the_message_anew(username, password):
    with pytest.raises(SecurityError):
        next(plain(username, password))


def test_a_token_and_its_extensions():
    talk = bearer("abc", {"pool": "a"})
    assert next(talk) == b"n,,\x01auth=Bearer abc\x01pool=a\x01\x01"
    with pytest.raises(StopIteration):
        talk.send(b"")


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (b'{"status":"invalid_token"}', "invalid_token"),
        (b"{", "no reason"),
        (b"[1]", "no reason"),
        (b'{"status":5}', "no reason"),
    ],
)
def test_a_refusal_is_heard_before_it_is_told(reason, said):
    talk = bearer("abc", {})
    next(talk)
    assert talk.send(reason) == b"\x01"
    with pytest.raises(ServerFault, match=said):
        talk.send(b"")


@pytest.mark.parametrize("token", ["", "a\x01b", "a\nb", "ä"])
def test_what_is_no_token(token):
    with pytest.raises(SecurityError, match="token"):
        next(bearer(token, {}))


async def test_the_mechanism_chooses_the_conversation():
    assert next(await conversation_of(Sasl("PLAIN", "u", "p"))) == b"\0u\0p"
    assert next(await conversation_of(Sasl("SCRAM-SHA-256", "u", "p"))).startswith(b"n,,n=u,r=")
    assert b"Bearer t\x01" in next(await conversation_of(Sasl("OAUTHBEARER", token=GivenToken(" t\n"))))


async def test_a_delegation_token():
    talk = await conversation_of(Sasl("SCRAM-SHA-256", "id", "hmac", by_token=True))
    assert next(talk).endswith(b",tokenauth=true")
