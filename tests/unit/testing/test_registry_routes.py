"""Each request of Confluent's interface has its response, and each error its code."""

import json

import pytest

from horolog.testing.registry_routes import ROUTES, answer
from horolog.testing.schema_registry import SchemaRegistry

FIRST = json.dumps({"type": "record", "name": "R", "fields": []}, separators=(",", ":"))
WIDER = FIRST.replace("[]", '[{"name":"a","type":"int"}]')
PROTO = 'syntax = "proto3"; message M { int32 x = 1; }'


@pytest.fixture
def ask():
    registry = SchemaRegistry()

    def asked(line, body=None):
        method, _, target = line.partition(" ")
        path, _, words = target.partition("?")
        query = dict(one.split("=") for one in words.split("&") if one)
        status, found = answer(registry, method, path, query, {} if body is None else body)
        return found if status == 200 else (int(status), found["error_code"])

    asked("POST /subjects/orders-value/versions", {"schema": FIRST})
    return asked


def test_schemas_are_found_by_their_ids_and_places(ask):
    assert ask("GET /") == {}
    assert ask("GET /schemas/types") == ["JSON", "PROTOBUF", "AVRO"]
    assert ask("GET /schemas/ids/1") == {"schema": FIRST}
    assert ask("GET /schemas/ids/1/schema") == FIRST
    assert ask("GET /schemas/ids/1/subjects") == ["orders-value"]
    assert ask("GET /schemas/ids/1/versions") == [{"subject": "orders-value", "version": 1}]
    for path in ("GET /schemas/ids/7", "GET /schemas/ids/7/versions"):
        assert ask(path) == (404, 40403)
    assert ask("GET /schemas/ids/x") == (404, 404)
    placed = {"subject": "orders-value", "version": 1, "id": 1, "schema": FIRST}
    assert ask("GET /subjects/orders-value/versions/latest") == placed
    assert ask("GET /subjects/orders%2Dvalue/versions/1") == placed
    assert ask("GET /subjects/orders-value/versions/1/schema") == FIRST
    assert ask("GET /subjects/orders-value/versions/1/referencedby") == []
    assert ask("POST /subjects/orders-value", {"schema": FIRST}) == placed
    assert ask("POST /subjects/orders-value", {"schema": WIDER}) == (404, 40403)
    assert ask("POST /subjects/none", {"schema": FIRST}) == (404, 40401)


def test_a_schema_of_another_kind_shows_it_and_its_references(ask):
    assert ask("POST /subjects/m/versions", {"schema": PROTO, "schemaType": "PROTOBUF"}) == {"id": 2}
    using = 'syntax = "proto3"; import "m.proto"; message N { M m = 1; }'
    reference = {"name": "m.proto", "subject": "m", "version": 1}
    body = {"schema": using, "schemaType": "PROTOBUF", "references": [reference]}
    assert ask("POST /subjects/n/versions", body) == {"id": 3}
    assert ask("GET /schemas/ids/3") == {"schema": using, "schemaType": "PROTOBUF", "references": [reference]}
    assert ask("GET /subjects/m/versions/1/referencedby") == [3]


def test_subjects_and_versions_come_and_go(ask):
    assert ask("GET /subjects") == ["orders-value"]
    assert ask("GET /subjects?subjectPrefix=x") == []
    assert ask("GET /subjects/orders-value/versions") == [1]
    assert ask("DELETE /subjects/orders-value?permanent=true") == (404, 40405)
    assert ask("DELETE /subjects/orders-value/versions/1?permanent=true") == (404, 40407)
    assert ask("DELETE /subjects/orders-value/versions/latest") == 1
    assert ask("GET /subjects") == []
    assert ask("GET /subjects?deleted=true") == ["orders-value"]
    assert ask("GET /subjects/orders-value/versions?deleted=true") == [1]
    assert ask("GET /subjects/orders-value/versions") == (404, 40401)
    assert ask("DELETE /subjects/orders-value?permanent=true") == [1]
    assert ask("DELETE /subjects/orders-value?permanent=true") == (404, 40401)
    ask("POST /subjects/orders-value/versions", {"schema": FIRST})
    assert ask("DELETE /subjects/orders-value") == [1]


def test_compatibility_is_set_for_all_and_for_one(ask):
    assert ask("GET /config") == {"compatibilityLevel": "BACKWARD"}
    assert ask("GET /config/orders-value") == (404, 40408)
    assert ask("GET /config/orders-value?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    path = "/compatibility/subjects/orders-value/versions"
    assert ask(f"POST {path}/latest", {"schema": WIDER}) == {"is_compatible": False}
    assert ask(f"POST {path}?verbose=true", {"schema": WIDER})["messages"][0].startswith("/a: the writer has no")
    assert ask("POST /subjects/orders-value/versions", {"schema": WIDER}) == (409, 409)
    assert ask("PUT /config/orders-value", {"compatibility": "none"}) == {"compatibility": "NONE"}
    assert ask("GET /config/orders-value") == {"compatibilityLevel": "NONE"}
    assert ask(f"POST {path}/latest?verbose=true", {"schema": WIDER}) == {"is_compatible": True, "messages": []}
    assert ask("DELETE /config/orders-value") == {"compatibilityLevel": "NONE"}
    assert ask("PUT /config", {"compatibility": "FULL"}) == {"compatibility": "FULL"}
    assert ask("DELETE /config") == {"compatibilityLevel": "FULL"}
    assert ask("PUT /config", {"compatibility": "SOME"}) == (422, 42203)


def test_a_registry_may_be_read_only(ask):
    assert ask("GET /mode") == {"mode": "READWRITE"}
    assert ask("PUT /mode", {"mode": "some"}) == (422, 42204)
    assert ask("PUT /mode", {"mode": "READONLY"}) == {"mode": "READONLY"}
    assert ask("POST /subjects/x/versions", {"schema": FIRST}) == (422, 42205)


def test_other_requests_are_refused(ask):
    assert ask("GET /nothing") == (404, 404)
    assert ask("PATCH /config") == (404, 404)
    assert ask("PUT /config", ["compatibility"]) == (422, 42201)
    assert len({line.partition(" ")[0] for line in ROUTES}) == 4
