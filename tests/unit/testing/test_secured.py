"""A broker that requires TLS, a login or both, by one word, and the settings with which clients reach it."""

import ssl

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from horolog.testing import broker_in_thread, horolog_broker
from horolog.testing.secured import OPEN, PROTOCOLS, issue, secured_by


@pytest.mark.parametrize("word", PROTOCOLS)
def test_clients_reach_it_with_its_settings(word):
    with broker_in_thread(security=word) as broker:
        assert broker.client_settings["security.protocol"] == PROTOCOLS[word]
        producer = Producer({**broker.client_settings, "reconnect.backoff.max.ms": 100})
        producer.produce("orders", b"one")
        assert producer.flush(20) == 0
        broker.expect("orders", count=1, value="one")
        broker.restart()
        producer.produce("orders", b"two")
        assert producer.flush(20) == 0


@pytest.mark.parametrize(
    ("word", "changes"),
    [
        ("sasl", {"sasl.password": "wrong"}),
        ("sasl_tls", {"security.protocol": "SASL_PLAINTEXT"}),
        ("tls", {"ssl.ca.pem": issue().authority}),
    ],
)
def test_clients_with_other_settings_do_not(word, changes):
    with broker_in_thread(security=word) as broker:
        admin = AdminClient({**broker.client_settings, **changes, "log_level": 0})
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=0.5)


def test_a_broker_without_the_word_is_open():
    assert secured_by(None) is OPEN
    with broker_in_thread() as broker:
        assert broker.client_settings == {"bootstrap.servers": broker.bootstrap}


async def test_another_word_is_refused_with_those_that_are_allowed():
    with pytest.raises(ValueError, match="security='ssl': expected one of tls, sasl, sasl_tls"):
        async with horolog_broker(security="ssl"):
            pass


def test_the_certificate_is_for_this_machine_and_signed_by_its_authority():
    issued = issue()
    context = ssl.create_default_context(cadata=issued.authority)
    assert len(context.get_ca_certs()) == 1
    assert issued != issue()
