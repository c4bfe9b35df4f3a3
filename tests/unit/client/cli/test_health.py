"""`horolog health` tells when the certificate of a broker's listener is about to expire."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horolog.client.cli.main import main
from horolog.client.security.settings import Sasl, Security, Tls
from horolog.client.wire.cluster_view import ClusterView, Node
from horolog.client.wire.troubles import expiry_warnings, openness_warnings
from horolog.protocol.apis import ApiKey
from horolog.protocol.messages.metadata import MetadataResponse
from horolog.testing import horolog_broker
from tests.support.authority import Authority
from tests.support.fake_peer import Scripted


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


async def health(authority: Authority, days: float, *options: str, checks: bool = True) -> int:
    """The exit code, at a broker whose certificate holds so many days."""
    shown = authority.issue("127.0.0.1", expires=datetime.now(UTC) + timedelta(days=days))
    keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(shown.both_file)}
    config = authority.folder / "client.properties"
    config.write_text(
        f"security.protocol=SSL\nssl.truststore.location={authority.trusted}\n"
        f"enable.ssl.certificate.verification={str(checks).lower()}\n"
    )
    listeners = {"listeners": "TLS://127.0.0.1:0", "listener.security.protocol.map": "TLS:SSL"}
    async with horolog_broker(settings=listeners | keys) as broker:
        words = ["health", "--bootstrap", broker.bootstrap, "--command-config", str(config), *options]
        return await asyncio.to_thread(main, words)


@pytest.mark.parametrize(("days", "is_told"), [(31, False), (29, True)])
async def test_the_end_of_a_certificate_is_told_a_month_before(
    authority: Authority, capsys: pytest.CaptureFixture[str], days: float, is_told: bool
) -> None:
    assert await health(authority, days) == 0
    said = capsys.readouterr()
    assert said.out.startswith("healthy: ")
    told = re.search(r"warning: the certificate of 127\.0\.0\.1:\d+ expires: \d{4}-\d\d-\d\d \d\d:\d\d UTC", said.err)
    assert (told is not None) is is_told


async def test_json_has_it_too(authority: Authority, capsys: pytest.CaptureFixture[str]) -> None:
    assert await health(authority, 1, "-o", "json") == 0
    said = capsys.readouterr()
    (warning,) = json.loads(said.out)["warnings"]
    assert "expires: " in warning
    assert said.err == ""


async def test_one_that_has_expired_and_is_not_checked(
    authority: Authority, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await health(authority, -1) != 0
    assert "has expired" in capsys.readouterr().err
    assert await health(authority, -1, checks=False) == 0
    assert "warning: the certificate of 127.0.0.1:" in capsys.readouterr().err


async def test_without_tls_there_is_nothing_to_tell(capsys: pytest.CaptureFixture[str]) -> None:
    async with horolog_broker() as broker:
        assert await asyncio.to_thread(main, ["health", "--bootstrap", broker.bootstrap, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []


def test_a_certificate_that_cannot_be_read_is_passed_over() -> None:
    assert expiry_warnings({"a:1": b"\x30\x00"}, 0.0) == []


async def test_a_broker_that_others_reach_and_that_asks_nobody_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    advertised = {"advertised.listeners": "PLAINTEXT://broker.example:9092"}
    async with horolog_broker(settings=advertised) as broker:
        assert await asyncio.to_thread(main, ["health", "--bootstrap", broker.bootstrap]) == 0
    told = "no authentication at broker.example:9092, which other machines can reach"
    assert f"warning: {told}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("security", "warns"),
    [
        (None, True),
        (Security(tls=Tls()), True),
        (Security(tls=Tls(own_chain="chain", own_key="key")), False),
        (Security(sasl=Sasl("PLAIN", "u", "p")), False),
    ],
)
def test_who_has_said_who_he_is_may_have_been_asked(security: Security | None, *, warns: bool) -> None:
    view = ClusterView(nodes={1: Node(1, "127.0.0.1", 9092, None), 2: Node(2, "10.0.0.5", 9092, None)})
    told = "no authentication at 10.0.0.5:9092, which other machines can reach"
    assert openness_warnings(view, security) == [told] * warns


# -- on our broker and on a real Kafka


def test_health(run, horolog, topic):
    ended = run("health", "-o", "json")
    assert (ended.code, ended.json["healthy"], ended.json["offline"]) == (0, True, [])
    assert ended.json["topics"] >= 1
    nobody = horolog("health", "--bootstrap", "127.0.0.1:1", "--timeout", "200ms")
    assert (nobody.code, nobody.out) == (5, "")
    assert "is the broker running there?" in nobody.err
    assert horolog("health", "--bootstrap", "127.0.0.1:http").code == 2


def without_leaders(count: int) -> Scripted:
    """A broker of a topic whose partitions have no leader."""
    broker = Scripted(partitions=count)

    def metadata(request: Any) -> MetadataResponse:
        answer = broker.metadata(request)
        assert isinstance(answer, MetadataResponse)
        for partition in answer.topics[0].partitions:
            partition.leader_id = -1
        return answer

    broker.scripts[ApiKey.METADATA] = metadata
    return broker


@pytest.mark.parametrize(("count", "more"), [(3, "t-0, t-1, t-2"), (12, " and 2 more")])
async def test_partitions_without_a_leader_are_an_alert(
    capsys: pytest.CaptureFixture[str], count: int, more: str
) -> None:
    async with without_leaders(count).serving() as address:
        assert await asyncio.to_thread(main, ["health", "--bootstrap", address]) == 3
        assert capsys.readouterr().out.endswith(f"{more}\n")
        assert await asyncio.to_thread(main, ["health", "--bootstrap", address, "-o", "json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["healthy"], len(found["offline"])) == (False, count)
