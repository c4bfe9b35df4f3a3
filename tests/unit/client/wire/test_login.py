"""Logins over real sockets: each mechanism, refusals that are final, and sessions that go on while requests are under way."""

import asyncio
import time

import pytest

from horolog.client.security import Sasl, Security, SecurityError
from horolog.client.security.settings import Store, Tls
from horolog.client.values.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    KafkaError,
    RequestTimedOut,
    TlsFailed,
    UnsupportedVersion,
)
from horolog.client.wire.client import Client
from horolog.client.wire.login import Login
from horolog.client.wire.retry import RetryPolicy
from horolog.protocol.apis import ApiKey
from horolog.protocol.messages.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from tests.support.authority import Authority
from tests.support.scripted_login import PASSWORD, TOKEN, USER, ScriptedLogin

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def security(mechanism, password=PASSWORD, token=TOKEN):
    async def source():
        return token

    if mechanism == "OAUTHBEARER":
        return Security(sasl=Sasl(mechanism, token=source))
    return Security(sasl=Sasl(mechanism, USER, password))


def client_of(address, wanted, **options):
    return Client(address, security=wanted, retry=RetryPolicy(timeout_ms=3000), request_timeout_ms=5000, **options)


async def ask(broker, wanted):
    async with broker.serving() as address, client_of(address, wanted) as client:
        return await client.metadata([])


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_the_right_credentials(mechanism):
    broker = ScriptedLogin()
    assert (await ask(broker, security(mechanism))).controller_id == 1
    assert broker.logins == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_the_wrong_credentials_are_refused_once(mechanism):
    broker = ScriptedLogin()
    with pytest.raises(AuthenticationFailed, match=r"not you|invalid_token") as caught:
        await ask(broker, security(mechanism, "wrong hush", "wrong.hush"))
    assert not caught.value.retriable
    assert "hush" not in str(caught.value)
    assert broker.count(ApiKey.SASL_HANDSHAKE) == 1


async def test_no_credentials_are_hinted_at():
    with pytest.raises(ConnectionFailed, match="may require credentials"):
        await ask(ScriptedLogin(), None)


async def test_a_mechanism_that_is_not_offered():
    with pytest.raises(AuthenticationFailed, match=r"it offers PLAIN$"):
        await ask(ScriptedLogin(mechanisms=("PLAIN",)), security("SCRAM-SHA-512"))


@pytest.mark.parametrize(("code", "said"), [(34, "does not use SASL"), (29, "error code 29")])
async def test_a_handshake_that_is_refused(code, said):
    broker = ScriptedLogin()
    broker.scripts[ApiKey.SASL_HANDSHAKE] = lambda _: SaslHandshakeResponse(error_code=code)
    with pytest.raises(AuthenticationFailed, match=said):
        await ask(broker, security("PLAIN"))


@pytest.mark.parametrize("answer", [b"", b"\xff", b"r=x,s=c2FsdA==,i=4096", b"v=AAAA"])
async def test_a_server_that_is_not_believed(answer):
    broker = ScriptedLogin()
    broker.scripts[ApiKey.SASL_AUTHENTICATE] = lambda _: SaslAuthenticateResponse(auth_bytes=answer)
    with pytest.raises(AuthenticationFailed, match="SCRAM-SHA-256 failed"):
        await ask(broker, security("SCRAM-SHA-256"))


async def test_a_server_with_another_password_is_not_believed():
    broker = ScriptedLogin()
    broker.outcome = lambda _right, last=b"": SaslAuthenticateResponse(auth_bytes=last)
    broker.password = "another"
    with pytest.raises(AuthenticationFailed, match="signature is wrong"):
        await ask(broker, security("SCRAM-SHA-512"))


async def test_what_cannot_be_said_is_told():
    with pytest.raises(AuthenticationFailed, match="NUL"):
        await ask(ScriptedLogin(), security("PLAIN", "a\0b"))


async def test_a_broker_without_authenticate_requests():
    broker = ScriptedLogin()
    broker.versions[ApiKey.SASL_HANDSHAKE] = (0, 0)
    with pytest.raises(UnsupportedVersion, match="SaslHandshake"):
        await ask(broker, security("PLAIN"))


async def test_a_login_without_an_answer_ends_in_time():
    broker = ScriptedLogin()
    broker.scripts[ApiKey.SASL_AUTHENTICATE] = lambda _: None
    async with broker.serving() as address:
        options = {"security": security("PLAIN"), "request_timeout_ms": 200, "retry": RetryPolicy(timeout_ms=100)}
        async with Client(address, **options) as client:
            with pytest.raises((RequestTimedOut, ConnectionFailed), match="SaslAuthenticate"):
                await client.metadata([])


async def test_a_session_goes_on_under_load():
    """Requests all the time, in parallel: none is lost, none comes in the middle of a login, and the connection stays."""
    broker = ScriptedLogin(lifetime_ms=300)
    async with broker.serving() as address, client_of(address, security("SCRAM-SHA-256")) as client:
        await client.metadata([])
        end = time.monotonic() + 1.5
        asked = 0

        async def load():
            nonlocal asked
            while time.monotonic() < end:
                await client.metadata([])
                asked += 1

        await asyncio.gather(*(load() for _ in range(8)))
        connections = [task.result().connection for task in client.channels._tasks.values()]
        assert [each.is_open for each in connections] == [True]
    assert broker.logins >= 4
    assert broker.count(ApiKey.API_VERSIONS) == 1
    assert asked > 50


async def test_an_idle_session_is_renewed_too():
    broker = ScriptedLogin(lifetime_ms=100)
    async with broker.serving() as address, client_of(address, security("OAUTHBEARER")) as client:
        await client.metadata([])
        async with asyncio.timeout(60):
            while broker.logins < 4:  # noqa: ASYNC110 - nobody tells of a login
                await asyncio.sleep(0.02)
    logins = broker.logins
    await asyncio.sleep(0.3)
    assert broker.logins == logins  # a closed client renews nothing


async def test_credentials_that_are_refused_later_end_the_connection():
    broker = ScriptedLogin(lifetime_ms=100)
    async with broker.serving() as address, client_of(address, security("PLAIN")) as client:
        await client.metadata([])
        broker.password = "changed"
        async with asyncio.timeout(60):
            while client.channels.is_open("", *client.addresses[0]):  # noqa: ASYNC110 - nobody tells of an end
                await asyncio.sleep(0.02)
        with pytest.raises(AuthenticationFailed):
            await client.metadata([])


async def test_an_unanswered_request_waits_for_a_login():
    broker = ScriptedLogin()
    async with broker.serving() as address, client_of(address, security("PLAIN")) as client:
        await client.metadata([])
        (task,) = client.channels._tasks.values()
        connection = task.result().connection
        async with connection.alone():
            waiting = asyncio.create_task(client.metadata([]))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            connection.pause_writing()
        await asyncio.sleep(0.05)
        assert not waiting.done()
        connection.resume_writing()
        assert await waiting


async def test_everybody_is_told_of_a_refusal():
    """Several who ask at once wait for the one connection, and get its error."""
    broker = ScriptedLogin()
    async with broker.serving() as address, client_of(address, security("PLAIN", "wrong")) as client:
        results = await asyncio.gather(*(client.metadata([]) for _ in range(5)), return_exceptions=True)
    assert all(isinstance(each, KafkaError) and not each.retriable for each in results)
    assert broker.count(ApiKey.SASL_HANDSHAKE) == 1


async def test_certificates_are_read_once_for_all_connections(tmp_path):
    authority = Authority(tmp_path)
    tls = Tls(trusted=Store("ssl.ca.location", str(authority.trusted)))
    login = Login(Security(tls=tls))
    first, second = await login.context(), await login.context()
    assert first is second is not None
    assert await Login(Security()).context() is None
    assert repr(login) == "<Login by SSL>"


async def test_certificates_that_cannot_be_read_are_no_reason_to_try_again():
    login = Login(Security(tls=Tls(trusted=Store("ssl.ca.location", "/no/such/file"))))
    with pytest.raises(TlsFailed, match=r"ssl\.ca\.location") as caught:
        await login.context()
    assert not caught.value.retriable


async def test_credentials_that_cannot_be_made_are_refused_before_the_broker_sees_them():
    async def broken():
        raise SecurityError("the program has no token")

    broker = ScriptedLogin()
    with pytest.raises(AuthenticationFailed, match="the program has no token"):
        await ask(broker, Security(sasl=Sasl("OAUTHBEARER", token=broken)))
    assert broker.logins == 0
