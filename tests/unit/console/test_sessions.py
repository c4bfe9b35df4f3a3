"""Sessions end by themselves, make room for others, and keep clients apart."""

from contextlib import ExitStack

import pytest

from horolog.client.security import Security
from horolog.console.options import (
    LOGINS_A_MINUTE,
    LOGINS_OF_AN_ADDRESS,
    SESSION_IDLE_S,
    SESSION_LONGEST_S,
    SESSIONS_AT_MOST,
    Login,
    Options,
    clusters_of,
)
from horolog.console.sessions import Sessions

CLUSTERS = clusters_of(["127.0.0.1:1"], None)


class Clock:
    now = 1000.0

    def monotonic(self):
        return self.now


def sessions(login=Login.SASL, **options):
    return Sessions(Options(options.pop("clusters", CLUSTERS), login, **options), Clock())


async def test_a_session_ends_when_it_is_idle_or_old():
    ours = sessions()
    idle, busy = await ours.begin("a", ("a", "p")), await ours.begin("b", ("b", "p"))
    client = ours.client(idle, CLUSTERS[0])
    ours._clock.now += SESSION_IDLE_S - 1
    assert await ours.find(busy.id) is busy
    ours._clock.now += 2
    assert await ours.find(idle.id) is None
    assert client.closed
    assert idle.credentials is None
    while ours._clock.now - busy.began < SESSION_LONGEST_S:
        assert await ours.find(busy.id) is busy
        ours._clock.now += SESSION_IDLE_S / 2
    ours._clock.now += 1
    assert await ours.find(busy.id) is None
    assert len(ours) == 0


async def test_the_one_that_was_idle_longest_makes_room():
    ours = sessions()
    first = await ours.begin("first")
    others = []
    for number in range(SESSIONS_AT_MOST):
        ours._clock.now += 1
        others.append(await ours.begin(str(number)))
    assert len(ours) == SESSIONS_AT_MOST
    assert await ours.find(first.id) is None
    assert await ours.find(others[0].id) is others[0]


async def test_users_with_credentials_have_clients_of_their_own_and_the_others_share():
    ours = sessions()
    one, other = await ours.begin("a", ("a", "p")), await ours.begin("b", ("b", "q"))
    clients = [ours.client(session, CLUSTERS[0]) for session in (one, other, one)]
    assert clients[0] is clients[2] is not clients[1]
    shared = sessions(Login.TOKEN, token="t" * 20)
    pair = [await shared.begin(""), await shared.begin("")]
    assert shared.client(pair[0], CLUSTERS[0]) is shared.client(pair[1], CLUSTERS[0])
    await ours.close()
    await shared.close()
    assert clients[0].closed
    assert len(ours) == 0


async def test_the_users_credentials_take_the_place_of_the_consoles():
    ours = sessions(mechanism="SCRAM-SHA-512")
    assert ours._security(CLUSTERS[0], None) is None
    found = ours._security(CLUSTERS[0], ("alice", "secret"))
    assert (found.sasl.mechanism, found.sasl.username, found.sasl.password) == ("SCRAM-SHA-512", "alice", "secret")
    tls = Security.of({"security.protocol": "SSL"})
    (cluster,) = clusters_of(["a"], tls)
    assert ours._security(cluster, None) is tls
    assert ours._security(cluster, ("alice", "secret")).protocol == "SASL_SSL"
    assert "secret" not in repr(await ours.begin("alice", ("alice", "secret")))


async def test_everybody_is_one_session_where_nobody_is_asked():
    ours = sessions(Login.NONE)
    assert await ours.find("") is await ours.find("x") is ours.everybody


def test_guessing_is_bounded():
    ours = sessions(Login.TOKEN, token="the right token of all")
    assert ours.is_token("the right token of all")
    assert not ours.is_token("the wrong one")
    assert not sessions().is_token("")
    for number in range(LOGINS_OF_AN_ADDRESS):
        with ours.trying("192.0.2.1", f"user {number // LOGINS_A_MINUTE}") as attempt:
            assert attempt is not None
    for user in ("user 0", "another"):
        with ours.trying("192.0.2.1", user) as attempt:
            assert attempt is None
    with ours.trying("192.0.2.2", "user 0") as attempt:
        assert attempt is not None
    ours._clock.now += 61
    with ours.trying("192.0.2.1", "user 0") as attempt:
        assert attempt is not None
    assert len(ours._guesses) == 2


def test_a_guess_counts_before_it_is_tried_and_a_right_one_never():
    ours = sessions(Login.SASL)
    with ExitStack() as trying:
        under_way = [trying.enter_context(ours.trying("a", "alice")) for _ in range(60)]
        assert sum(one is not None for one in under_way) == LOGINS_A_MINUTE
        for one in under_way[:LOGINS_A_MINUTE]:
            one.counts = False
    with pytest.raises(OSError, match="gone"), ours.trying("a", "alice"):
        raise OSError("gone")
    for _ in range(LOGINS_A_MINUTE):
        with ours.trying("a", "alice") as attempt:
            assert attempt is not None
    assert "10" in repr(ours._guesses["a", "alice"])


def test_a_guess_that_is_older_than_a_minute_when_it_ends():
    ours = sessions(Login.SASL)
    with ours.trying("a", "alice") as attempt:
        ours._clock.now += 100
        with ours.trying("a", "bob"):
            pass
        attempt.counts = False
