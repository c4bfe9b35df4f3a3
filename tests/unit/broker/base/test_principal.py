"""A principal reads as Kafka writes it."""

from horolog.broker.base.principal import ANONYMOUS, Principal


def test_a_principal_is_written_as_type_and_name():
    assert str(Principal("User", "alice")) == "User:alice"
    assert str(ANONYMOUS) == "User:ANONYMOUS"
