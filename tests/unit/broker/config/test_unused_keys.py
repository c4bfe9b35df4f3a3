"""Kafka's settings that nothing here depends on have a row, and no others do."""

from horolog.broker.config import protection, unused_keys


def test_each_has_a_row_that_may_change_while_running():
    for key in unused_keys.NAMES:
        row = unused_keys.row(key)
        assert (row.name, row.dynamic, row.parse("x")) == (key, True, "x")
    assert unused_keys.row("no.such.key") is None


def test_none_promises_an_identity_or_encryption_of_its_own():
    promising = {"principal.builder.class", "ssl.engine.factory.class", "sasl.kerberos.service.name"}
    assert all(protection.asked_by(key, "x") is not None for key in promising)
    assert not promising & unused_keys.NAMES
