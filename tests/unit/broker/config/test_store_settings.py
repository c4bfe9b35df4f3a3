"""The settings of brokers over a store."""

import pytest

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Layers, from_layers


@pytest.mark.parametrize("url", ["http://127.0.0.1:7070", "https://s3.example"])
def test_an_endpoint_is_a_url(url):
    assert from_layers(Layers(static={"horolog.store.endpoint": url})).horolog_store_endpoint == url


@pytest.mark.parametrize("text", ["127.0.0.1:7070", "s3://b"])
def test_other_endpoints_are_refused(text):
    with pytest.raises(SettingsError, match="expected http://HOST:PORT or https://HOST:PORT"):
        from_layers(Layers(static={"horolog.store.endpoint": text}))


def test_there_is_no_store_unless_one_is_named():
    assert from_layers(Layers()).horolog_store is None
    assert from_layers(Layers(static={"horolog.store": ""})).horolog_store is None
