"""A SASL listener's conversations, over a whole broker without sockets: who comes in, what comes before, and everything else closed."""

from __future__ import annotations

import asyncio
import struct

import pytest

from horolog.broker.base.principal import ANONYMOUS, Principal
from horolog.broker.handlers import HANDLERS
from horolog.broker.network.conversation import Conversation, ConversationState
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.network.sasl_handshake import SaslHandshake
from horolog.broker.security.sasl.plain import PlainLogin, PlainUsers
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import encode
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.api_versions import ApiVersionsRequest
from horolog.protocol.messages.metadata import MetadataRequest
from horolog.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.support.memory_broker import MemoryBroker, Wire, still
from tests.support.sasl import Hourglass, counted, door, plain_token

ALICE = plain_token("alice", "secret")
WRONG = plain_token("alice", "wrong")
INVALID = "Authentication failed: Invalid username or password"
SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}


class Entrance:
    """A broker with one SASL listener that nobody needs a socket for."""

    def __init__(self, broker, **more):
        self.glass = Hourglass()
        self.clock = broker.clock
        self.door = door(glass=self.glass, clock=broker.clock, **more)
        self._broker = broker

    def connect(self):
        wire = Wire(self._broker.dispatcher, ConnectionLimits.of(self._broker.settings))
        handshake = SaslHandshake(self.door, self._broker.dispatcher.dispatch)
        conversation = Conversation(
            self._broker.dispatcher.dispatch,
            ConnectionLimits.of(self._broker.settings),
            still,
            listener="IN",
            handshake=handshake,
        )
        conversation.carrier = wire
        conversation.peer_host = "1.2.3.4"
        wire.conversation = conversation
        return wire

    async def known(self, token=ALICE):
        wire = self.connect()
        await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        answer = await wire.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
        assert answer.error_code == ErrorCode.NONE
        return wire, answer


def entered(scenario, **more):
    """Run a scenario over a broker in memory."""

    async def run():
        async with MemoryBroker() as broker:
            broker.broker._endpoints._addresses["IN"] = broker.broker._endpoints._addresses["PLAINTEXT"]
            await scenario(Entrance(broker, **more))

    asyncio.run(run())


@pytest.mark.parametrize("version", range(3))
def test_a_peer_that_proves_itself_is_served_as_its_principal(version):
    async def scenario(entrance):
        wire = entrance.connect()
        assert wire.conversation.state is ConversationState.HANDSHAKING
        assert (await wire.ask(ApiVersionsRequest(**SOFTWARE), 4)).error_code == ErrorCode.NONE
        chosen = await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert (chosen.error_code, chosen.mechanisms) == (ErrorCode.NONE, ["PLAIN"])
        answer = await wire.ask(SaslAuthenticateRequest(auth_bytes=ALICE), version)
        assert (answer.error_code, bytes(answer.auth_bytes), answer.error_message) == (ErrorCode.NONE, b"", "")
        assert wire.conversation.principal == Principal("User", "alice")
        assert wire.conversation.state is ConversationState.SERVING
        assert (await wire.ask(MetadataRequest(topics=[]), 9)).brokers
        assert counted(entrance.door) == {("PLAIN", "login", "success"): 1}

    entered(scenario)


@pytest.mark.parametrize("version", range(2))
def test_a_mechanism_that_is_not_enabled_is_answered_late_with_those_that_are(version):
    async def scenario(entrance):
        wire = entrance.connect()
        wire.send(SaslHandshakeRequest(mechanism="GSSAPI"), version)
        wire.send(SaslHandshakeRequest(mechanism="PLAIN"), version)
        assert not wire.answers()
        assert entrance.glass.run() == [0.1]
        answer = await wire.take(SaslHandshakeRequest(), version)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN"])
        assert wire.closed
        assert not wire.answers()

    entered(scenario)


def test_a_peer_that_fails_is_answered_late_and_its_connection_closed():
    async def scenario(entrance):
        wire = entrance.connect()
        await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        wire.send(SaslAuthenticateRequest(auth_bytes=WRONG), 2)
        wire.send(SaslAuthenticateRequest(auth_bytes=ALICE), 2)  # a second guess that does not wait
        assert not wire.answers()
        assert not wire.closed
        assert entrance.glass.run() == [0.1]
        answer = await wire.take(SaslAuthenticateRequest(), 2)
        assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, INVALID)
        assert wire.closed
        assert wire.conversation.principal == ANONYMOUS
        assert counted(entrance.door) == {("PLAIN", "login", "failure"): 1}

    entered(scenario)


def test_a_peer_that_does_not_wait_for_its_refusal_leaves_nothing_behind():
    async def scenario(entrance):
        for version in (0, 1):
            wire = entrance.connect()
            await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), version)
            if version:
                wire.send(SaslAuthenticateRequest(auth_bytes=WRONG), 2)
            else:
                wire.conversation.receive(struct.pack(">i", len(WRONG)) + WRONG)
            assert len(entrance.glass.waiting) == 1
            wire.conversation.lost()
            assert entrance.glass.waiting == []

    entered(scenario)


def raw(token):
    return struct.pack(">i", len(token)) + token


def test_tokens_of_old_clients_follow_without_a_request_around_them():
    async def scenario(entrance):
        wire = entrance.connect()
        await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        wire.conversation.receive(raw(ALICE))
        assert bytes(wire.received) == struct.pack(">i", 0)
        wire.received.clear()
        assert wire.conversation.principal == Principal("User", "alice")
        assert (await wire.ask(MetadataRequest(topics=[]), 1)).brokers
        wire = entrance.connect()
        await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        wire.conversation.receive(raw(WRONG) + raw(ALICE))
        assert not wire.closed
        assert entrance.glass.run() == [0.1]
        assert wire.closed
        assert not wire.received

    entered(scenario)


def header(key, version):
    """A request of this api with nothing in it."""
    api = API[key]
    body = struct.pack(">hhih4s", key, version, 1, 4, b"test") + b"\0" * (api.request_header_version(version) - 1)
    return body + encode(api.request(), version)


BEFORE = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}


@pytest.mark.parametrize("key", HANDLERS, ids=lambda key: key.name)
def test_nothing_else_comes_before_the_peer_is_known(key):
    async def scenario(entrance):
        handler = HANDLERS[key]
        for version in {handler.min_version, handler.max_version}:
            for steps in range(3):
                wire = entrance.connect()
                if steps:
                    await wire.ask(ApiVersionsRequest(**SOFTWARE), 3)
                if steps > 1:
                    await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
                expected = (BEFORE, {ApiKey.SASL_HANDSHAKE}, {ApiKey.SASL_AUTHENTICATE})[steps]
                wire.conversation.receive(raw(header(key, version)))
                assert wire.closed is (key not in expected)
                assert not (wire.closed and wire.answers())
                assert wire.conversation.principal == ANONYMOUS

    entered(scenario)


@pytest.mark.parametrize("frame", [b"\0\0", struct.pack(">hhi", 999, 0, 1) + b"\xff\xff", b"\xff" * 40])
def test_what_is_no_request_closes_the_connection(frame):
    async def scenario(entrance):
        wire = entrance.connect()
        wire.conversation.receive(raw(frame))
        assert wire.closed
        assert not wire.received

    entered(scenario)


def test_versions_that_are_not_served_may_be_asked_for_again():
    async def scenario(entrance):
        wire = entrance.connect()
        wire.conversation.receive(raw(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 1, -1) + b"\0"))
        assert wire.answers() == 1
        wire.received.clear()
        assert (await wire.ask(ApiVersionsRequest(), 0)).error_code == ErrorCode.NONE
        wire.conversation.receive(raw(header(ApiKey.API_VERSIONS, 0)))
        assert wire.closed

    entered(scenario)


def test_what_a_stranger_sends_has_a_bound():
    async def scenario(entrance):
        for data in (raw(b"x" * 1001), struct.pack(">i", 5000) + b"x" * 1001):
            wire = entrance.connect()
            wire.conversation.receive(data)
            assert wire.closed
            assert not wire.received
        wire, _ = await entrance.known()
        assert (await wire.ask(MetadataRequest(topics=None), 9)).brokers
        wire.conversation.receive(struct.pack(">i", 5000) + b"x" * 1001)
        assert not wire.closed

    entered(scenario)


# -- logins that end


def test_a_request_after_the_login_has_ended_closes_the_connection():
    async def scenario(entrance):
        wire, answer = await entrance.known()
        assert answer.session_lifetime_ms == 5000
        entrance.clock.advance(5000)
        assert (await wire.ask(MetadataRequest(topics=[]), 9)).brokers
        entrance.clock.advance(1)
        wire.send(MetadataRequest(topics=[]), 9)
        assert wire.closed
        assert not wire.answers()

    entered(scenario, max_reauth_ms={"PLAIN": 5000})


def test_a_login_is_renewed_within_the_conversation():
    async def scenario(entrance):
        wire, _ = await entrance.known()
        for _ in range(3):
            entrance.clock.advance(6000)  # renewed too late, too
            assert (await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)).error_code == ErrorCode.NONE
            answer = await wire.ask(SaslAuthenticateRequest(auth_bytes=ALICE), 1)
            assert (answer.error_code, answer.session_lifetime_ms) == (ErrorCode.NONE, 5000)
            assert (await wire.ask(MetadataRequest(topics=[]), 9)).brokers
        assert counted(entrance.door)["PLAIN", "renewal", "success"] == 3

    entered(scenario, max_reauth_ms={"PLAIN": 5000})


@pytest.mark.parametrize(
    ("mechanism", "token", "told"),
    [
        ("PLAIN", WRONG, INVALID),
        ("PLAIN", plain_token("bob", "other"), "Cannot change principals during re-authentication from"),
    ],
)
def test_who_changes_with_a_renewal_is_sent_away(mechanism, token, told):
    async def scenario(entrance):
        wire, _ = await entrance.known()
        await wire.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
        wire.send(SaslAuthenticateRequest(auth_bytes=token), 1)
        assert entrance.glass.run() == [0.1]
        answer = await wire.take(SaslAuthenticateRequest(), 1)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message.startswith(told)
        assert wire.closed
        assert wire.conversation.principal == Principal("User", "alice")

    users = PlainUsers({"alice": "secret", "bob": "other"})
    both = {"PLAIN": lambda: PlainLogin(users), "OTHER": lambda: PlainLogin(users)}
    entered(scenario, mechanisms=both, max_reauth_ms={"PLAIN": 5000, "OTHER": 5000})


def test_another_mechanism_at_a_renewal_closes_the_connection_without_an_answer():
    async def scenario(entrance):
        wire, _ = await entrance.known()
        assert (await wire.ask(SaslHandshakeRequest(mechanism="OTHER"), 1)).error_code == ErrorCode.NONE
        wire.send(SaslAuthenticateRequest(auth_bytes=ALICE), 1)
        assert not wire.closed
        assert entrance.glass.run() == [0.1]
        assert wire.closed
        assert not wire.answers()

    both = {name: lambda: PlainLogin(PlainUsers({"alice": "secret"})) for name in ("PLAIN", "OTHER")}
    entered(scenario, mechanisms=both, max_reauth_ms={"PLAIN": 5000, "OTHER": 5000})


def test_nothing_else_comes_while_a_login_is_renewed():
    async def scenario(entrance):
        wire, _ = await entrance.known()
        await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        wire.send(MetadataRequest(topics=[]), 9)
        assert wire.closed
        assert not wire.answers()

    entered(scenario, max_reauth_ms={"PLAIN": 5000})


def test_a_renewal_that_comes_too_soon_or_where_logins_never_end_is_answered_with_an_error():
    async def too_soon(entrance):
        wire, _ = await entrance.known()
        await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        await wire.ask(SaslAuthenticateRequest(auth_bytes=ALICE), 1)
        answer = await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])

    async def never(entrance):
        wire, answer = await entrance.known()
        assert answer.session_lifetime_ms == 0
        entrance.clock.advance(10**9)
        answer = await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        answer = await wire.ask(SaslAuthenticateRequest(auth_bytes=ALICE), 1)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert answer.error_message == "SaslAuthenticate request received after successful authentication"
        assert (await wire.ask(MetadataRequest(topics=[]), 9)).brokers

    entered(too_soon, max_reauth_ms={"PLAIN": 5000})
    entered(never)
