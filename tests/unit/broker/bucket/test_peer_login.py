"""The login of a broker at another one, answer by answer."""

import asyncio

import pytest

from horolog.broker.bucket.peer_login import LoginFailed, PeerLogin
from horolog.broker.security.peer_access import PeerUser
from horolog.protocol.compile import encoder
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.sasl import SaslAuthenticateResponse, SaslHandshakeResponse


class Inner(asyncio.Protocol):
    """The protocol that gets the connection."""

    def __init__(self):
        self.events = []

    def connection_made(self, transport):
        self.events.append("made")

    def data_received(self, data):
        self.events.append(data)

    def connection_lost(self, error):
        self.events.append("lost")

    def pause_writing(self):
        self.events.append("pause")

    def resume_writing(self):
        self.events.append("resume")


class Wire:
    def __init__(self):
        self.written, self.is_aborted, self.is_closed = [], False, False

    def write(self, data):
        self.written.append(data)

    def abort(self):
        self.is_aborted = True

    def close(self):
        self.is_closed = True


class Other:
    """The other broker, as the test has it answer."""

    def __init__(self, mechanism="PLAIN"):
        self.inner, self.wire = Inner(), Wire()
        self.login = PeerLogin(PeerUser(mechanism, "broker", "secret"), self.inner, asyncio.get_running_loop())
        self.login.connection_made(self.wire)

    def answer(self, response, version=1):
        parts = []
        encoder(type(response), version)(response, parts)
        body = len(self.wire.written).to_bytes(4) + b"".join(parts)
        self.login.data_received(len(body).to_bytes(4) + body)

    def fault(self):
        assert self.wire.is_aborted
        assert self.inner.events == []
        with pytest.raises(LoginFailed) as failed:
            self.login.outcome.result()
        assert "secret" not in str(failed.value)
        return str(failed.value)


async def test_a_connection_is_passed_on_once_the_login_has_succeeded():
    other = Other()
    assert "not yet in" in repr(other.login)
    other.answer(SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"]))
    assert other.wire.written[1].endswith(b"\0broker\0secret")
    other.answer(SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"", session_lifetime_ms=0))
    assert other.login.outcome.done()
    other.login.data_received(b"an answer")
    other.login.pause_writing()
    other.login.resume_writing()
    other.login.connection_lost(None)
    assert other.inner.events == ["made", b"an answer", "pause", "resume", "lost"]
    assert repr(other.login).endswith("in>")


async def test_a_login_that_lasts_for_a_while_ends_with_the_connection():
    other = Other()
    other.answer(SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"]))
    other.answer(SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"", session_lifetime_ms=10))
    async with asyncio.timeout(30):
        while not other.wire.is_closed:  # noqa: ASYNC110 - a timer of the loop
            await asyncio.sleep(0.001)
    other.login.connection_lost(None)
    assert other.inner.events == ["made", "lost"]


async def test_refusals_are_told():
    other = Other()
    other.answer(SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["SCRAM-SHA-256"]))
    assert other.fault() == "it does not offer PLAIN, but SCRAM-SHA-256"
    other = Other()
    other.answer(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[]))
    assert other.fault() == "it does not offer PLAIN, but nothing"
    other = Other()
    other.answer(SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"]))
    refused = SaslAuthenticateResponse(error_code=58, error_message="wrong", auth_bytes=b"", session_lifetime_ms=0)
    other.answer(refused)
    assert other.fault() == "it refuses the login of broker: wrong"


async def test_a_broker_that_does_not_know_the_password_is_not_believed():
    other = Other("SCRAM-SHA-256")
    other.answer(SaslHandshakeResponse(error_code=0, mechanisms=["SCRAM-SHA-256"]))
    other.answer(SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"x", session_lifetime_ms=0))
    assert "has not the form of SCRAM" in other.fault()


async def test_scram_takes_another_step():
    other = Other("SCRAM-SHA-256")
    other.answer(SaslHandshakeResponse(error_code=0, mechanisms=["SCRAM-SHA-256"]))
    nonce = other.wire.written[1].partition(b"r=")[2]
    challenge = b"r=" + nonce + b"more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    other.answer(
        SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=challenge, session_lifetime_ms=0)
    )
    assert b",p=" in other.wire.written[2]
    other.answer(
        SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"v=eA==", session_lifetime_ms=0)
    )
    assert "does not know the password" in other.fault()


async def test_bytes_that_are_no_answer_and_an_early_end_are_told():
    other = Other()
    other.login.data_received((2).to_bytes(4) + b"no")
    assert "without a correlation id" in other.fault()
    other.login.connection_lost(None)
    other = Other()
    other.login.connection_lost(None)
    assert other.fault() == "it has closed the connection"


async def test_an_answer_that_does_not_come_is_waited_for():
    other = Other()
    other.login._agreed(None)
    other.login._answered(None)
    assert not other.login.outcome.done()
