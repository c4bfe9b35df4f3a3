"""Subjects of a registry, their versions, compatibility and differences; a registry that fails is one sentence."""

import pytest

from horolog.client.decoding import RegistryAccess
from horolog.console import schemas
from horolog.console.schemas import DiffLine, SchemaVersion, difference
from horolog.testing.registry_server import horolog_registry
from tests.support.console_browser import browser
from tests.support.registry_server import registry_server

FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "state", "type": "string", "default": "new"}]}
CLOSED = RegistryAccess("http://127.0.0.1:9", timeout_ms=500)


async def test_a_subject_with_its_versions():
    async with horolog_registry() as registry, browser("127.0.0.1:9", registry=RegistryAccess(registry.url)) as page:
        assert "The registry has no subjects." in (await page.get("/schemas")).text
        for schema in (FIRST, SECOND):
            registry.register("orders-value", schema)
        listed = (await page.get("/schemas?filter=ORD")).text
        assert 'href="/schemas?subject=orders-value"' in listed
        assert 'aria-current="page">Schemas</a>' in listed
        assert "No subject has" in (await page.get("/schemas?filter=none")).text
        text = (await page.get("/schemas?subject=orders-value")).text
        assert "Changes from version 1" in text
        assert '<span class="added">+      &#34;name&#34;: &#34;state&#34;,</span>' in text
        assert "BACKWARD" in text
        assert "of the registry" in text
        first = (await page.get("/schemas?subject=orders-value&version=1")).text
        assert "Changes from" not in first
        back = (await page.get("/schemas?subject=orders-value&version=1&with=2")).text
        assert '<span class="removed">-      &#34;name&#34;: &#34;state&#34;,</span>' in back
        assert (await page.get("/schemas?subject=orders-value&version=7")).status_code == 404
        assert (await page.get("/schemas?subject=nothing")).status_code == 404


async def test_without_a_registry_there_is_no_page():
    async with browser("127.0.0.1:9") as page:
        answer = await page.get("/schemas")
        assert (answer.status_code, "--registry" in answer.text) == (404, True)
        assert ">Schemas</a>" not in answer.text


@pytest.mark.parametrize(
    ("answers", "status", "said"),
    [
        ({"/subjects": 401}, 502, "does not accept the console"),
        ({"/subjects": 500}, 502, "answers 500"),
        ({"/subjects": {}}, 502, "answers 200"),
        ({"/subjects": b"HTTP/1.1 200 OK\r\n\r\n<html>"}, 502, "answers 200"),
        ({"/subjects": ["s"], "/subjects/s/versions": []}, 404, "has no versions"),
    ],
)
async def test_a_registry_that_fails(answers, status, said):
    async with registry_server(answers) as server, browser("127.0.0.1:9", registry=server.access()) as page:
        answer = await page.get("/schemas?subject=s")
        assert (answer.status_code, said in answer.text) == (status, True)


async def test_a_registry_that_is_not_there():
    async with browser("127.0.0.1:9", registry=CLOSED) as page:
        answer = await page.get("/schemas")
        assert (answer.status_code, "cannot be reached" in answer.text) == (502, True)


async def test_a_subject_with_a_level_of_its_own_and_references(monkeypatch):
    answers = {
        "/subjects": ["s"],
        "/subjects/s/versions": [1],
        "/subjects/s/versions/1": {
            "id": 9,
            "schemaType": "PROTOBUF",
            "schema": 'syntax = "proto3";\nimport "a.proto";',
            "references": [{"name": "a.proto", "subject": "a", "version": 1}],
        },
        "/config/s": {"compatibilityLevel": "FULL"},
    }
    monkeypatch.setattr(schemas, "LINES_AT_MOST", 1)
    async with registry_server(answers) as server, browser("127.0.0.1:9", registry=server.access()) as page:
        text = (await page.get("/schemas?subject=s")).text
        assert "FULL" in text
        assert "of this subject" in text
        assert "It refers to a.proto." in text
        assert "Only the first" in text
        server.answers["/config/s"] = 404
        assert "not known" in (await page.get("/schemas?subject=s")).text


def test_differences():
    def version(text):
        return SchemaVersion(1, "1", "PROTOBUF", text, ())

    assert difference(version("a\nb"), version("a\nb")) == []
    assert difference(version("a\nb"), version("a\nc")) == [
        DiffLine("place", "@@ -1,2 +1,2 @@"),
        DiffLine("same", " a"),
        DiffLine("removed", "-b"),
        DiffLine("added", "+c"),
    ]
