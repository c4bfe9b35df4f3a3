"""Keys for one listener are read as Kafka reads them, and the more exact one counts."""

import pytest

from horolog.broker.config.listener_keys import ListenerKey, find, names, plain, read
from horolog.broker.config.setting_types import ConfigSource, ConfigType, SettingsError
from horolog.broker.config.settings import SPECS, Layers, Settings, from_layers

SECRET = "do not show this"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("listener.name.outside.ssl.client.auth", ("outside", "", "ssl.client.auth")),
        ("listener.name.outside.scram-sha-512.sasl.jaas.config", ("outside", "scram-sha-512", "sasl.jaas.config")),
        ("listener.name.outside.sasl.jaas.config", ("outside", "", "sasl.jaas.config")),
        ("ssl.client.auth", None),
        ("listener.name.outside", None),
    ],
)
def test_a_key_says_whom_it_is_for(name, told):
    assert read(name) == (None if told is None else ListenerKey(*told))
    assert plain(name) == (name if told is None else told[2])


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("ssl.client.auth", "ssl.client.auth"),
        ("listener.name.outside.ssl.client.auth", "ssl.client.auth"),
        ("listener.name.outside.plain.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.name.outside.plain.ssl.client.auth", None),
        ("listener.name.outside.log.roll.ms", None),
        ("listener.name.outside.no.such.key", None),
        ("no.such.key", None),
    ],
)
def test_only_some_rows_are_for_listeners(name, base):
    spec = find(name, SPECS)
    assert (spec is None) is (base is None)
    if spec is not None and base is not None:
        assert (spec.name, spec.type) == (name, SPECS[base].type)


def test_the_more_exact_key_counts():
    key = "connections.max.reauth.ms"
    exact, listener, shared = names("OUTSIDE", key, "PLAIN")
    assert (exact, listener) == (f"listener.name.outside.plain.{key}", f"listener.name.outside.{key}")
    assert names("OUTSIDE", key) == (listener, shared)
    given = {shared: "1", listener: "2", exact: "3"}
    found = from_layers(Layers(static=given))
    assert found.of_listener("OUTSIDE", key, "PLAIN") == 3
    assert found.of_listener("OUTSIDE", key) == 2
    assert found.of_listener("INSIDE", key, "PLAIN") == found.value("listener.name.inside." + key) == 1
    assert Settings().of_listener("INSIDE", key) == 0


def test_a_wrong_value_for_one_listener_is_refused():
    with pytest.raises(SettingsError, match=r"listener\.name\.outside\.ssl\.client\.auth='maybe'"):
        from_layers(Layers(static={"listener.name.outside.ssl.client.auth": "maybe"}))


def test_keys_for_listeners_are_described_where_they_are_given():
    key = "listener.name.outside.ssl.client.auth"
    given = from_layers(Layers(static={key: "required"}))
    assert given.listener_keys() == (key,)
    assert given.describe()[-1].name == key
    (entry,) = given.describe([key, "listener.name.outside.no.such.key"])
    assert (entry.value, entry.source, entry.read_only) == ("required", ConfigSource.STATIC_BROKER, True)
    assert key in repr(given)
    assert f"{key} = required" in given.explain(key)


def test_secrets_are_shown_nowhere():
    keys = ["ssl.keystore.password", "listener.name.outside.plain.sasl.jaas.config"]
    given = from_layers(Layers(static=dict.fromkeys(keys, SECRET)))
    for key in keys:
        assert given.value(key) == SECRET
        (entry,) = given.describe([key])
        assert (entry.value, entry.sensitive, entry.type) == (None, True, ConfigType.PASSWORD)
        assert SECRET not in given.explain(key) + repr(given) + repr(given.layers)
        with pytest.raises(SettingsError) as refused:
            given.with_dynamic({}, {key: SECRET})
        assert SECRET not in str(refused.value)
        with pytest.raises(SettingsError) as refused:
            from_layers(Layers(static={key: SECRET * 10_000}))
        assert SECRET not in str(refused.value)
