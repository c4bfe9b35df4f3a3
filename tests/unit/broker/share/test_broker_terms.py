"""A group without settings of its own goes by those of the broker."""

from horolog.broker.share.broker_terms import BrokerTerms, Reset, terms_of_broker
from tests.support.logs import broker_settings


def test_the_settings_of_the_broker_hold_for_all_groups():
    settings = broker_settings({"group.share.record.lock.duration.ms": "20000"})
    assert terms_of_broker(settings) == BrokerTerms(20_000, 5, 2_000, False, Reset("latest", 0), True)
