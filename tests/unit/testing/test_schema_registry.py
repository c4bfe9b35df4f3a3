"""A registry has one id for a schema, versions by subject, and refuses what its compatibility does not allow."""

import json

import pytest

from horolog.testing.schema_registry import AVRO, JSON, PROTOBUF, RegistryError, SchemaRegistry

ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string", "default": ""}
MUST = {"name": "must", "type": "string"}
PROTO = 'syntax = "proto3"; message M { int32 x = 1; }'


def order(*fields):
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields)})


@pytest.fixture
def registry():
    return SchemaRegistry()


def put(registry, subject, text, kind=AVRO, *references):
    return registry.register(subject, registry.parsed({"schema": text, "schemaType": kind, "references": references}))


def code_of(call, *given, **named):
    with pytest.raises(RegistryError) as refused:
        call(*given, **named)
    return refused.value.code


def test_one_schema_has_one_id_and_a_version_in_each_subject(registry):
    first = put(registry, "a", order(ID))
    assert put(registry, "a", order(ID).replace(" ", "\n ")) == first
    assert put(registry, "b", order(ID)) == first
    second = put(registry, "a", order(ID, NOTE))
    assert second != first
    assert [(one.number, one.id) for one in registry.subject("a").present] == [(1, first), (2, second)]
    assert registry.version("a", "latest").id == registry.version("a", "2").id == second
    assert registry.schema(first).text == order(ID).replace(" ", "")
    assert registry.lookup("a", registry.parsed({"schema": order(ID)})).number == 1
    assert "2 subjects, 2 schemas" in repr(registry)
    assert code_of(registry.lookup, "b", registry.parsed({"schema": order(NOTE)})) == 40403
    assert code_of(registry.version, "a", "9") == 40402
    assert code_of(registry.version, "a", "x") == 42202
    assert code_of(registry.version, "none", "1") == 40401
    assert code_of(registry.version, "none", "1", deleted=True) == 40401
    assert code_of(registry.schema, 99) == 40403


@pytest.mark.parametrize(
    ("level", "allowed"),
    [
        ("NONE", (True, True)),
        ("BACKWARD", (True, False)),
        ("FORWARD", (True, True)),
        ("FULL_TRANSITIVE", (True, False)),
    ],
)
def test_new_versions_are_compatible_as_the_level_says(registry, level, allowed):
    registry.levels["a"] = level
    put(registry, "a", order(ID))
    for text, is_allowed in zip((order(ID, NOTE), order(ID, NOTE, MUST)), allowed, strict=True):
        if is_allowed:
            put(registry, "a", text)
        else:
            assert code_of(put, registry, "a", text) == 409


def test_a_transitive_level_compares_with_all_versions(registry):
    registry.levels[""] = "BACKWARD_TRANSITIVE"
    put(registry, "a", order(ID))
    put(registry, "a", order(ID, NOTE))
    plain = registry.parsed({"schema": order(ID, {"name": "note", "type": "string"})})
    assert registry.faults("a", plain) != []
    assert registry.faults("a", plain, registry.version("a", "2")) == []
    assert registry.faults("new", plain) == []


def test_other_kinds_are_not_compared_but_do_not_mix(registry):
    put(registry, "p", PROTO, PROTOBUF)
    put(registry, "p", PROTO.replace("int32", "string"), PROTOBUF)
    put(registry, "j", '{"type": "object"}', JSON)
    assert code_of(put, registry, "j", order(ID)) == 409


def test_references_are_read_with_their_schema(registry):
    put(registry, "money", json.dumps({"type": "record", "name": "Money", "fields": [ID]}))
    reference = {"name": "Money", "subject": "money", "version": 1}
    number = put(registry, "order", order({"name": "price", "type": "Money"}), AVRO, reference)
    assert registry.referenced_by("money", 1) == [number]
    assert registry.referenced(registry.schema(number)).keys() == {"Money"}
    wider = order({"name": "price", "type": "Money"}, NOTE)
    assert put(registry, "order", wider, AVRO, reference) == number + 1
    assert code_of(registry.delete, "money", registry.subject("money").present, permanent=False) == 42206
    assert code_of(put, registry, "x", order({"name": "price", "type": "Money"})) == 42201
    assert code_of(put, registry, "x", order(ID), AVRO, {**reference, "version": 7}) == 42201


def test_what_is_deleted_can_be_removed_for_good_and_not_before(registry):
    put(registry, "a", order(ID))
    put(registry, "a", order(ID, NOTE))
    first = registry.version("a", "1")
    assert code_of(registry.delete, "a", [first], permanent=True) == 40407
    assert registry.delete("a", [first], permanent=False) == [1]
    assert code_of(registry.version, "a", "1") == 40402
    assert registry.version("a", "1", deleted=True) is first
    assert registry.delete("a", [first], permanent=True) == [1]
    rest = registry.subject("a").present
    registry.delete("a", rest, permanent=False)
    assert code_of(registry.subject, "a") == 40401
    assert put(registry, "a", order(ID)) == 1
    assert registry.version("a", "latest").number == 3
    registry.delete("a", registry.subject("a").present, permanent=False)
    registry.delete("a", registry.subjects["a"].versions, permanent=True)
    assert registry.subjects == {}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"schema": ""}, 42201),
        ({}, 42201),
        ({"schema": "{"}, 42201),
        ({"schema": '{"type": "nothing"}'}, 42201),
        ({"schema": "syntax", "schemaType": "PROTOBUF"}, 42201),
        ({"schema": "{}", "schemaType": "XML"}, 422),
        ({"schema": '"int"', "references": [{"name": "x"}]}, 42201),
    ],
)
def test_what_is_no_schema(registry, body, code):
    assert code_of(registry.parsed, body) == code
    assert RegistryError(code, "").status == 422


def test_a_primitive_type_needs_no_quotes(registry):
    assert registry.parsed({"schema": "string"}).text == '"string"'
