"""Which listener brokers ask each other at, by Kafka's two keys."""

import pytest

from horolog.broker.config.inter_broker import inter_broker_address
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Layers, from_layers

LISTENERS = "OUTSIDE://127.0.0.1:1,SASL_SSL://127.0.0.1:2,INSIDE://127.0.0.1:3"
MAP = "OUTSIDE:PLAINTEXT,SASL_SSL:SASL_SSL,INSIDE:SSL"


def chosen(**more):
    static = {"listeners": LISTENERS, "listener.security.protocol.map": MAP}
    settings = from_layers(Layers(static=static | {key.replace("_", "."): value for key, value in more.items()}))
    return inter_broker_address(settings).name


def test_the_first_listener_serves_unless_a_key_names_another():
    assert chosen() == "OUTSIDE"
    assert chosen(inter_broker_listener_name="inside") == "INSIDE"
    assert chosen(security_inter_broker_protocol="SASL_SSL") == "SASL_SSL"


def test_a_listener_that_is_not_there_is_refused():
    with pytest.raises(SettingsError, match="no listener has this name; the listeners are OUTSIDE, SASL_SSL, INSIDE"):
        chosen(inter_broker_listener_name="OTHER")
    with pytest.raises(SettingsError, match="no listener has this name"):
        chosen(security_inter_broker_protocol="SSL")


def test_one_key_is_given():
    with pytest.raises(SettingsError, match="either this or inter"):
        chosen(inter_broker_listener_name="INSIDE", security_inter_broker_protocol="SASL_SSL")
