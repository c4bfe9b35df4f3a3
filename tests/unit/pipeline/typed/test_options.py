"""The options of typed columns: what they need, and what contradicts what."""

import pytest

from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.typed.options import PartOptions, parse_typed, without_part

JSON = {"value.format": "json", "value.schema": "id BIGINT"}
REGISTRY = {"schema.registry.url": "http://r:8081"}


def parsed(options):
    lower = {name.lower(): value for name, value in options.items()}
    return parse_typed(lambda name: lower.get(name.lower()))


def test_without_any_of_them_bytes_stay_bytes():
    assert parsed({}) is None


def test_what_is_not_given_has_its_default():
    typed = parsed(JSON)
    assert typed.value == PartOptions("value", "json", "id BIGINT")
    assert (typed.key, typed.registry, typed.mode, typed.dead_letters) == (None, None, "permissive", None)
    assert (typed.time_field, typed.time_unit, typed.keeps_raw) == (None, "auto", False)


def test_all_that_can_be_given():
    typed = parsed(
        {
            **JSON,
            **REGISTRY,
            "key.format": "Protobuf",
            "key.subject": "orders-key",
            "key.version": "3",
            "key.message": "shop.Key",
            "registry.user": "u",
            "registry.password": "hidden",
            "mode": "DropMalformed",
            "dead.letter.topic": "bad",
            "timestamp.field": "created",
            "timestamp.unit": "MS",
            "includeRaw": "true",
        }
    )
    assert typed.key == PartOptions("key", "protobuf", None, "shop.Key", "orders-key", "3")
    assert (typed.mode, typed.dead_letters) == ("dropmalformed", "bad")
    assert (typed.time_field, typed.time_unit, typed.keeps_raw) == ("created", "ms", True)
    assert "hidden" not in repr(typed)
    assert parsed({**JSON, "dead.letter.topic": "bad"}).mode == "dropmalformed"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "failfast"}, "mode needs value.format or key.format"),
        ({"value.schema": "id BIGINT"}, "value.schema needs value.format"),
        ({**JSON, "key.version": "1"}, "key.version needs key.format"),
        ({"value.format": "xml"}, "value.format: 'xml' is not one of json, avro"),
        ({"value.format": "json"}, "value.schema must define the columns of json"),
        ({"value.format": "string", "value.schema": "id BIGINT"}, "value.schema does not apply to the format string"),
        ({"value.format": "avro"}, "avro needs value.schema"),
        ({**JSON, "value.message": "m"}, "value.message is only for protobuf"),
        ({**JSON, "value.subject": "s"}, "value.subject is only for a schema of a registry"),
        ({**REGISTRY, "value.format": "avro", "value.version": "0"}, "value.version: '0' is neither a version number"),
        ({**REGISTRY, "value.format": "avro", "value.version": "²"}, "value.version: '²' is neither a version number"),
        ({**JSON, "mode": "strict"}, "mode: 'strict' is not one of permissive"),
        ({**JSON, "dead.letter.topic": " "}, "dead.letter.topic: ' ' is not a name of a topic"),
        ({**JSON, "mode": "failfast", "dead.letter.topic": "bad"}, "mode failfast ends at the first broken record"),
        ({"key.format": "string", "timestamp.field": "at"}, "timestamp.field is a field of the value"),
        ({"value.format": "string", "timestamp.field": "at"}, "timestamp.field is a field of the value"),
        ({**JSON, "timestamp.unit": "ms"}, "timestamp.unit needs timestamp.field"),
        ({**JSON, "timestamp.field": "at", "timestamp.unit": "h"}, "timestamp.unit: 'h' is not one of auto"),
        ({**JSON, "includeRaw": "yes"}, "includeRaw: 'yes' is not one of true, false"),
        ({**JSON, "registry.user": "u"}, "registry.user needs registry.password"),
        ({**JSON, "registry.user": "u:v", "registry.password": "p"}, "registry.user: a user name cannot have a colon"),
        ({**JSON, "registry.user": "u", "registry.password": "p"}, "needs registry, the address"),
        (
            {**JSON, **REGISTRY, "registry.user": "u", "registry.password": "p", "basic.auth.user.info": "u:p"},
            "registry.user and .* are both given",
        ),
        ({**JSON, "schema.registry.url": "http://u:p@r:8081"}, ".*put the password elsewhere"),
        ({**JSON, "schema.registry.url": "ftp://r"}, "^registry: expected http"),
    ],
)
def test_what_cannot_be_is_refused(options, said):
    with pytest.raises(OptionError, match=said):
        parsed(options)


def test_a_part_is_left_as_bytes_with_all_that_is_said_of_it():
    both = {**JSON, "key.format": "string", "timestamp.field": "at", "subscribe": "t"}
    assert without_part(both, "value") == {"key.format": "string", "subscribe": "t"}
    assert without_part(both, "key") == {**JSON, "timestamp.field": "at", "subscribe": "t"}
    assert without_part({**JSON, **REGISTRY, "Mode": "failfast", "subscribe": "t"}, "value") == {"subscribe": "t"}
