"""A registry is asked once for each schema; its failures are one sentence, remembered for a while, and hold nobody up."""

import asyncio

import pytest

from horolog.client.decoding import registry as module
from horolog.client.decoding.registry import RegisteredSchema, Registry
from horolog.client.decoding.values import DecodingError
from tests.support.registry_server import registry_server

A = {"schema": '"long"'}
REFERRING = {
    "schema": "main",
    "schemaType": "PROTOBUF",
    "references": [
        {"name": "a.proto", "subject": "a/x", "version": 1},
        {"name": "b.proto", "subject": "b", "version": 2},
    ],
}


async def test_a_schema_is_asked_for_once():
    async with registry_server({"/schemas/ids/7": A}) as server:
        registry = Registry(server.access())
        found = await asyncio.gather(*(registry.schema(7) for _ in range(5)))
        assert found == [RegisteredSchema(7, "AVRO", '"long"')] * 5
        assert len(server.asked) == registry.asked == 1


async def test_references_come_before_those_that_need_them():
    answers = {
        "/schemas/ids/1": REFERRING,
        "/subjects/a%2Fx/versions/1": {
            "schema": "A",
            "references": [{"name": "b.proto", "subject": "b", "version": 2}],
        },
        "/subjects/b/versions/2": {"schema": "B", "references": [{"name": "a.proto", "subject": "a/x", "version": 1}]},
    }
    async with registry_server(answers) as server:
        found = await Registry(server.access()).schema(1)
        assert found.kind == "PROTOBUF"
        assert list(found.references.items()) == [("b.proto", "B"), ("a.proto", "A")]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (404, "the registry http://127.0.0.1:PORT has no schema 7"),
        (401, "the registry http://127.0.0.1:PORT requires credentials (401)"),
        (500, "the registry http://127.0.0.1:PORT answered the request for schema 7 with 500"),
        (
            [],
            "the registry http://127.0.0.1:PORT answered the request for schema 7 with something that is not a schema",
        ),
        (
            {"schema": 5},
            "the registry http://127.0.0.1:PORT answered the request for schema 7 with something that is not a schema",
        ),
        (
            b"HTTP/1.1 200 OK\r\n\r\n{",
            "the registry http://127.0.0.1:PORT answered the request for schema 7 with something that is not a schema",
        ),
        (b"", "the registry http://127.0.0.1:PORT answered with something that is not HTTP"),
        (
            {"schema": "x", "references": [{}]},
            "the registry http://127.0.0.1:PORT has a schema with an incomplete reference",
        ),
        (
            {"schema": "x", "references": [5]},
            "the registry http://127.0.0.1:PORT has a schema with an incomplete reference",
        ),
        (REFERRING, "the registry http://127.0.0.1:PORT has no schema a.proto"),
    ],
)
async def test_failures_are_one_sentence_and_remembered(answer, said):
    now = 0.0
    async with registry_server({"/schemas/ids/7": answer}) as server:
        registry = Registry(server.access(), lambda: now)
        for _ in range(3):
            with pytest.raises(DecodingError) as caught:
                await registry.schema(7)
            assert str(caught.value) == said.replace("PORT", str(server.port))
        asked = len(server.asked)
        assert asked <= 2
        now = module.FORGET_FAILURE_SECONDS + 1
        server.answers["/schemas/ids/7"] = A
        assert (await registry.schema(7)).text == '"long"'


async def test_credentials_that_are_refused_are_not_shown():
    async with registry_server({"/schemas/ids/7": 403}) as server:
        registry = Registry(server.access(user_info="alice:geheim"))
        with pytest.raises(DecodingError, match=r"refused the credentials \(403\)") as caught:
            await registry.schema(7)
        assert "geheim" not in str(caught.value)
        with pytest.raises(DecodingError, match="refused the credentials"):  # of another schema: nobody is asked again
            await registry.schema(8)
        assert len(server.asked) == 1


async def test_those_that_wait_hear_of_a_failure_at_once():
    async with registry_server({}) as server:
        server.delay = 0.05
        registry = Registry(server.access())
        found = await asyncio.gather(*(registry.schema(7) for _ in range(5)), return_exceptions=True)
        assert {str(one) for one in found} == {f"the registry http://127.0.0.1:{server.port} has no schema 7"}
        assert len(server.asked) == 1


async def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST_SCHEMAS", 3)
    async with registry_server({f"/schemas/ids/{number}": A for number in range(10)}) as server:
        registry = Registry(server.access())
        for number in range(20):
            if number < 10:
                await registry.schema(number)
            else:
                with pytest.raises(DecodingError):
                    await registry.schema(number)
        assert len(registry._schemas) == 3
        assert len(registry._failures) <= 3


async def test_references_end(monkeypatch):
    monkeypatch.setattr(module, "MOST_REFERENCES", 5)
    answers = {
        f"/subjects/s/versions/{n}": {
            "schema": "x",
            "references": [{"name": f"r{n + 1}", "subject": "s", "version": n + 1}],
        }
        for n in range(10)
    }
    async with registry_server(
        answers | {"/schemas/ids/1": {"schema": "x", "references": [{"name": "r0", "subject": "s", "version": 0}]}}
    ) as server:
        with pytest.raises(DecodingError, match="needs more than 5 others"):
            await Registry(server.access()).schema(1)


async def test_versions_of_a_subject_are_asked_for_each_time():
    answers = {
        "/subjects/a%2Fx/versions/latest": REFERRING | {"id": 9},
        "/subjects/a%2Fx/versions/1": {"schema": "A"},
        "/subjects/b/versions/2": {"schema": "B"},
    }
    async with registry_server(answers) as server:
        registry = Registry(server.access())
        found = await registry.version("a/x")
        assert (found.id, found.kind, found.references) == (9, "PROTOBUF", {"a.proto": "A", "b.proto": "B"})
        assert (await registry.version("a/x", "1")).id == -1
        await registry.version("a/x", "1")
        assert registry.asked == 5
        with pytest.raises(DecodingError, match="has no version latest of none"):
            await registry.version("none")


@pytest.mark.parametrize(("answer", "is_unavailable"), [(503, True), (401, True), (404, False), (418, False)])
async def test_a_registry_that_cannot_answer_is_told_from_a_schema_that_is_not_there(answer, is_unavailable):
    async with registry_server({"/schemas/ids/7": answer}) as server:
        registry = Registry(server.access())
        for _ in range(2):  # the second time from memory
            with pytest.raises(DecodingError) as caught:
                await registry.schema(7)
            assert isinstance(caught.value, module.RegistryUnavailable) == is_unavailable
        assert registry.asked == 1
