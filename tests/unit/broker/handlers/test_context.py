"""One request from its arrival to its answer: answered once, late or never, or abandoned by its client."""

from types import SimpleNamespace

import pytest

from horolog.broker.base.principal import Principal
from horolog.broker.handlers.context import close_over
from horolog.protocol.errors import ProtocolError
from tests.support.request_contexts import request_context


@pytest.fixture
def context():
    return request_context(3, principal=Principal("User", "alice"))


def test_a_request_is_made_on_behalf_of_its_connections_principal(context):
    assert (context.listener, str(context.principal)) == ("PLAINTEXT", "User:alice")


def test_an_answer_is_framed_counted_and_handed_to_the_connection(context):
    context.reply(b"body")
    assert b"".join(context.parts) == b"\0\0\0\x08\0\0\0\7body"
    assert context.route.meter.sizes == [12]
    assert context.connection.answers == 1


def test_an_answer_that_comes_after_another_one_is_dropped(context):
    """The first says that it has taken too long."""
    context.reply(b"late")
    context.reply(b"body")
    assert b"".join(context.parts)[8:] == b"late"
    assert (context.route.meter.sizes, context.connection.answers) == ([12], 1)


def test_a_response_is_changed_before_it_is_encoded_by_the_last_change_first(context):
    context.amend(lambda response: response + b"!")
    context.amend(bytes.upper)
    context.reply(b"body")
    assert b"".join(context.parts)[8:] == b"BODY!"


def test_a_request_may_ask_for_no_answer(context):
    context.set_no_response()
    assert (context.parts, context.route.meter.sizes) == ([], [0])


def test_whoever_waits_for_a_request_is_told_once_that_its_client_is_gone(context):
    told = []
    context.on_abandoned = lambda: told.append("gone")
    context.abandon()
    context.abandon()
    assert told == ["gone"]


def test_a_request_that_was_answered_is_not_abandoned(context):
    told = []
    context.on_abandoned = lambda: told.append("gone")
    context.set_response(b"body")
    context.abandon()
    assert not told


@pytest.mark.parametrize(
    ("error", "reason", "logged"),
    [
        (ProtocolError("the request is too short"), "the request is too short", []),
        (
            ValueError("odd"),
            "internal error",
            ["a request of 127.0.0.1 failed inside the broker; its connection is closed"],
        ),
    ],
)
def test_an_error_closes_the_connection_and_is_logged_if_it_is_the_brokers(error, reason, logged, caplog):
    closed = []
    close_over(SimpleNamespace(peer_host="127.0.0.1", close=closed.append), error)
    assert closed == [reason]
    assert [one.getMessage() for one in caplog.records] == logged


def test_a_request_says_what_it_is(context):
    assert "v3" in repr(context)
    assert repr(context).endswith(", waiting>")
    context.reply(b"body")
    assert repr(context).endswith(", answered>")


def test_parts_stay_on_the_disk_if_the_answer_leaves_at_once(context):
    context.connection = SimpleNamespace(
        carrier=SimpleNamespace(sends_files=True), unanswered=SimpleNamespace(leaves_now=lambda one: one is context)
    )
    assert context.takes_unread
    context.connection.carrier.sends_files = False
    assert not context.takes_unread
