"""Which schema a typed value has, what it is as a command, and which values can be typed again."""

from types import SimpleNamespace

import pytest

from horolog.client.decoding import Decoder, Options, RegistryAccess
from horolog.console.schema_values import Typed, encoder_of, typed, words_of
from horolog.console.visits import Refused
from horolog.testing.registry_server import horolog_registry

AVRO = '{"type":"record","name":"R","fields":[{"name":"id","type":"long"}]}'
PROTO = 'syntax = "proto3"; message M { int64 id = 1; message Inside { int64 x = 1; } }'


def visit_of(access):
    return SimpleNamespace(
        desk=SimpleNamespace(decoder=Decoder(Options(registry=access)), options=SimpleNamespace(registry=access))
    )


async def test_a_subject_and_an_id_name_a_schema():
    async with horolog_registry() as registry:
        visit = visit_of(RegistryAccess(registry.url))
        number = registry.register("t-value", AVRO)
        message = registry.register("m", PROTO, "PROTOBUF")
        of_message = await encoder_of(visit, "m")
        assert of_message.encode(b'{"id": 7}') == b"\0" + message.to_bytes(4, "big") + b"\0\x08\x07"
        for name in ("t-value", str(number)):
            encoder = await encoder_of(visit, name)
            assert encoder.encode(b'{"id": 7}') == b"\0" + number.to_bytes(4, "big") + b"\x0e"
        assert await encoder_of(visit, "") is None
        for name, reason in (("gone", "gone"), ("77", "77"), ("9" * 30, "9")):
            with pytest.raises(Refused, match=reason) as refused:
                await encoder_of(visit, name)
            assert refused.value.field == "schema"
        assert words_of(visit, "t-value") == ["--registry", registry.url.rstrip("/"), "--subject", "t-value"]
        assert words_of(visit, "7")[2:] == ["--schema-id", "7"]
        assert words_of(visit, "") == []


async def test_without_a_registry_there_are_no_schemas():
    visit = visit_of(None)
    with pytest.raises(Refused, match="--registry URL"):
        await encoder_of(visit, "t-value")
    assert words_of(visit, "t-value") == []


async def test_text_and_values_with_a_schema_can_be_typed_again():
    async with horolog_registry() as registry:
        visit = visit_of(RegistryAccess(registry.url))
        number = registry.register("t-value", AVRO)
        message = registry.register("m", PROTO, "PROTOBUF")
        framed = b"\0" + number.to_bytes(4, "big")
        assert await typed(visit, framed + b"\x0e") == Typed('{"id":7}', str(number))
        assert await typed(visit, b'{"a": 1}') == Typed('{"a": 1}')
        assert await typed(visit, None) == Typed("")
        of_message = b"\0" + message.to_bytes(4, "big")
        assert await typed(visit, of_message + b"\0\x08\x07") == Typed('{"id":7}', str(message))
        for content in (b"\xff\xfe", of_message + b"\x04\0\0\x08\xff\x01"):  # the second: of a message inside the first
            with pytest.raises(Refused, match="cannot be sent again") as refused:
                await typed(visit, content)
            assert refused.value.status == 409
