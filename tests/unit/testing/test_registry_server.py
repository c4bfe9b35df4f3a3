"""The registry on a port: clients register schemas and find them, and horolog's own decoder reads records by them."""

import json
import socket
import urllib.error
import urllib.request

import pytest

from horolog.client.decoding import Decoder, Options, RegistryAccess
from horolog.client.values.types import ConsumerRecord
from horolog.testing import EmbeddedRegistry, ThreadedRegistry, horolog_registry, registry_in_thread
from horolog.testing.schema_registry import RegistryError

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}


def send(url, body=None, method=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=30) as response:
        return response.read()


@pytest.fixture(scope="module")
def registry():
    with registry_in_thread() as running:
        yield running


def test_clients_register_and_find_schemas(registry):
    versions = f"{registry.url}/subjects/orders-value/versions"
    assert json.loads(send(versions, {"schema": json.dumps(SCHEMA)})) == {"id": 1}
    assert json.loads(send(f"{registry.url}/schemas/ids/1/schema")) == SCHEMA
    assert registry.register("orders-value", SCHEMA) == 1
    assert registry.subjects() == {"orders-value": [1]}
    assert json.loads(send(f"{registry.url}/config", {"compatibility": "NONE"}, "PUT")) == {"compatibility": "NONE"}
    with pytest.raises(urllib.error.HTTPError) as refused:
        send(f"{registry.url}/subjects/none/versions")
    with refused.value as response:
        assert (response.code, json.loads(response.read())["error_code"]) == (404, 40401)
    assert repr(registry) == f"<ThreadedRegistry at {registry.url}>"


def test_what_is_no_request_is_refused(registry):
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"{registry.url}/config", b"{", method="PUT"), timeout=30)
    with refused.value as response:
        assert response.code == 400
    port = int(registry.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET")
        client.shutdown(socket.SHUT_WR)
        assert client.recv(100) == b""


def test_a_schema_that_is_none_is_refused_without_a_client(registry):
    with pytest.raises(RegistryError, match="Invalid schema"):
        registry.register("x", "{}")
    assert ThreadedRegistry.register.__doc__ == EmbeddedRegistry.register.__doc__


async def test_records_are_decoded_by_its_schemas():
    async with horolog_registry() as registry:
        number = registry.register("t-value", json.dumps(SCHEMA))
        decoder = Decoder(Options(registry=RegistryAccess(registry.url)))
        value = b"\0" + number.to_bytes(4, "big") + b"\x0e"
        decoded = await decoder.decode(ConsumerRecord("t", 0, 0, 0, 0, None, value, ()))
        assert (decoded.value, decoded.value_schema) == ({"id": 7}, "R (1)")
        assert "EmbeddedRegistry at http://127.0.0.1:" in repr(registry)


def test_it_may_stop_before_it_has_started():
    EmbeddedRegistry().stop()
