"""SCRAM as Kafka speaks it: who knows the password comes in, and nobody learns whether a name is a user's."""

import base64

import pytest

from horolog.broker.base.principal import Principal
from horolog.broker.security.delegation import DelegationToken
from horolog.broker.security.sasl import scram_keys
from horolog.broker.security.sasl.outcome import OTHER_AUTHORIZATION_ID, Challenge, Failed, LoggedIn
from horolog.broker.security.sasl.scram import MAX_NONCE_LENGTH, Scram
from horolog.broker.security.sasl.scram_keys import KINDS, Form
from tests.support.sasl import ScramPeer

NAMES = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
BOB = Principal("User", "bob")
USERS = {
    mechanism: {name: scram_keys.of_password(kind, f"{name}'s", 4096) for name in ("alice", "a,b=c", "=2C")}
    for mechanism, kind in KINDS.items()
}


def server(mechanism=NAMES[0]):
    return Scram(KINDS[mechanism], USERS[mechanism].get, b"secret")


def challenge(one, token):
    outcome = one.step(token)
    assert isinstance(outcome, Challenge), outcome
    return outcome.token


@pytest.mark.parametrize("mechanism", NAMES)
@pytest.mark.parametrize("name", ["alice", "a,b=c", "=2C"])
@pytest.mark.parametrize("gs2", ["n,,", "n,a={},"])
def test_who_knows_the_password_comes_in_and_sees_that_the_server_knows_it_too(mechanism, name, gs2):
    escaped = name.replace("=", "=3D").replace(",", "=2C")
    peer, one = ScramPeer(mechanism, name, f"{name}'s", gs2=gs2.format(escaped)), server(mechanism)
    outcome = one.step(peer.last(challenge(one, peer.first())))
    assert isinstance(outcome, LoggedIn)
    assert outcome.principal == Principal("User", name)
    assert outcome.ends_ms is None
    assert peer.believes(outcome.token)


def test_kafkas_own_client_binds_to_nothing_even_with_an_authorization_id():
    peer, one = ScramPeer(NAMES[0], "alice", "alice's", gs2="n,a=alice,"), server()
    assert isinstance(one.step(peer.last(challenge(one, peer.first()), "n,,")), LoggedIn)


@pytest.mark.parametrize("mechanism", NAMES)
@pytest.mark.parametrize(("name", "reason"), [("alice", "wrong password"), ("nobody", "no such user")])
def test_a_wrong_name_is_answered_as_a_wrong_password_is(mechanism, name, reason):
    peer, one = ScramPeer(mechanism, name, "wrong"), server(mechanism)
    said = challenge(one, peer.first()).decode()
    assert said.endswith(",i=4096")
    outcome = one.step(peer.last(said.encode()))
    assert outcome == Failed(reason, name)
    assert outcome.told is None
    again = challenge(server(mechanism), peer.first()).decode()
    assert said.partition(",s=")[2] == again.partition(",s=")[2]  # the salt of a name never changes
    assert len(base64.b64decode(said.partition(",s=")[2].partition(",")[0])) == scram_keys.SALT_BYTES


def test_a_login_cannot_be_played_again():
    peer, one = ScramPeer(NAMES[0], "alice", "alice's"), server()
    last = peer.last(challenge(one, peer.first()))
    assert isinstance(one.step(last), LoggedIn)
    other = server()
    challenge(other, peer.first())
    assert other.step(last) == Failed("the nonce is not the one of this login", "alice")


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"n,,",
        b"n,,n=alice",
        b"n,,n=,r=abc",
        b"n,,n=alice,r=",
        b"n,,n=al=ice,r=abc",
        b"n,,n=al,ice,r=abc",
        b"n,,m=x,n=alice,r=abc",  # an extension that must be understood
        b"p=tls-unique,,n=alice,r=abc",
        b"y,,n=alice,r=abc",
        b"n,,n=alice,r=a bc",
        b"n,,n=alice,r=abc,1=2",
        b"n,,n=ali\xffce,r=abc",
        b"n,,n=alice,r=abc\x00",
    ],
)
def test_a_first_message_of_another_form_is_refused(token):
    outcome = server().step(token)
    assert isinstance(outcome, Failed)
    assert outcome.told is None


def test_without_tokens_nobody_logs_in_by_one():
    failed = server().step(ScramPeer(NAMES[0], "alice", "x", extensions=",tokenauth=true").first())
    assert failed == Failed("delegation tokens are switched off", "alice")
    assert isinstance(server().step(ScramPeer(NAMES[0], "alice", "x", extensions=",a=b,C=d").first()), Challenge)


class Tokens:
    """Two tokens of bob, of which one has expired."""

    def __init__(self):
        self.asked = []

    def password_of(self, token_id):
        self.asked.append(token_id)
        return f"of {token_id}"

    def valid(self, token_id):
        return DelegationToken(token_id, BOB, BOB, (), 1, 2, 3) if token_id == "id" else None


def by_token(name, password, extensions=",tokenauth=true", mechanism=NAMES[0]):
    """The outcome of a login by a token, the salt that it was given, and the peer."""
    one = Scram(KINDS[mechanism], USERS[mechanism].get, b"secret", Form(10, 8192), Tokens())
    peer = ScramPeer(mechanism, name, password, extensions=extensions)
    said = challenge(one, peer.first())
    return one.step(peer.last(said)), said.partition(b",s=")[2], peer


@pytest.mark.parametrize("mechanism", NAMES)
@pytest.mark.parametrize("extensions", [",tokenauth=true", ",tokenauth=TRUE", ",a=b,tokenauth=true"])
def test_who_has_a_token_comes_in_as_its_owner(mechanism, extensions):
    outcome, _, peer = by_token("id", "of id", extensions, mechanism)
    assert (outcome.principal, outcome.ends_ms, outcome.token_id) == (BOB, 2, "id")
    assert peer.believes(outcome.token)


@pytest.mark.parametrize(
    ("name", "password", "reason"),
    [
        ("id", "wrong", "wrong HMAC of the delegation token"),
        ("old", "of old", "no such delegation token"),
        ("unknown", "x", "no such delegation token"),
        ("alice", "alice's", "no such delegation token"),
    ],
)
def test_a_wrong_token_is_refused_as_a_wrong_password_is(name, password, reason):
    outcome, salt, _ = by_token(name, password)
    assert outcome == Failed(reason, name)
    assert outcome.told is None
    assert salt == by_token(name, password)[1], "always the same"
    assert salt.endswith(b",i=4096")


@pytest.mark.parametrize("name", ["id", "old", "unknown"])
def test_every_id_takes_the_same_steps(name):
    tokens = Tokens()
    one = Scram(KINDS[NAMES[0]], USERS[NAMES[0]].get, b"secret", tokens=tokens)
    peer = ScramPeer(NAMES[0], name, "x", extensions=",tokenauth=true")
    one.step(peer.last(challenge(one, peer.first())))
    assert tokens.asked == [name], "the keys are made once, whether there is a token or not"


@pytest.mark.parametrize("extensions", ["", ",tokenauth=false", ",tokenauth=yes"])
def test_the_id_of_a_token_is_no_user(extensions):
    outcome, _, _ = by_token("id", "of id", extensions)
    assert outcome == Failed("no such user", "id")


def test_a_nonce_has_a_bound():
    peer = ScramPeer(NAMES[0], "alice", "x", nonce="n" * MAX_NONCE_LENGTH)
    assert isinstance(server().step(peer.first()), Challenge)
    assert isinstance(server().step(peer.first() + b"n"), Failed)


def test_another_authorization_id_is_told_as_kafka_tells_it():
    failed = server().step(ScramPeer(NAMES[0], "alice", "x", gs2="n,a=bob,").first())
    assert failed == Failed(OTHER_AUTHORIZATION_ID, "alice", OTHER_AUTHORIZATION_ID)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"c=biws", b"c=eSws"),  # y,, : the downgrade that channel binding is to tell
        (b"c=biws", b"c=biw"),
        (b"c=biws,", b""),
        (b",p=", b",p=AAAA"),
        (b",p=", b",x="),
        (b"r=abc", b"r=abd"),
        (b"=,p", b"=,P"),
    ],
)
def test_a_changed_final_message_is_refused(old, new):
    peer, one = ScramPeer(NAMES[0], "alice", "alice's"), server()
    last = peer.last(challenge(one, peer.first()))
    changed = last.replace(old, new)
    if changed == last:
        changed = last + b"x"
    assert isinstance(one.step(changed), Failed)


def test_a_proof_of_another_length_is_refused():
    peer, one = ScramPeer(NAMES[0], "alice", "alice's"), server()
    last = peer.last(challenge(one, peer.first()))
    assert one.step(last.partition(b",p=")[0] + b",p=AAAA") == Failed("wrong password", "alice")
    one = server()
    challenge(one, peer.first())
    assert isinstance(one.step(b"\xff"), Failed)
