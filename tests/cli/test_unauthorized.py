"""What a user without a right reads: that the right is missing, and for what. Never that a thing is not there."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.process import free_ports
from horolog import Consumer, Producer
from horolog.client.values.errors import KafkaError
from tests.support.broker_process import BrokerProcess
from tests.support.command import run_typed
from tests.support.guarded_broker import STANDARD_AUTHORIZER
from tests.support.sasl_brokers import LISTENER, MODULES

LOGIN = f"{MODULES}.plain.PlainLoginModule required"
T2 = "not authorized for topic 't2' (TOPIC_AUTHORIZATION_FAILED)"
CLUSTER = "not authorized for the cluster (CLUSTER_AUTHORIZATION_FAILED)"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """A broker with the topics t and t2: where everybody may do everything, and where alice comes in, who may READ t."""
    folder = tmp_path_factory.mktemp("guarded")
    plain, asking = free_ports(2)
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{asking}",
        "sasl.enabled.mechanisms": "PLAIN",
        f"{LISTENER}plain.sasl.jaas.config": f'{LOGIN} user_alice="pw";',
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS",
    }
    mine = folder / "alice.properties"
    mine.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={LOGIN} username="alice" password="pw";\n'
    )
    mine.chmod(0o600)
    broker = BrokerProcess(folder / "data", settings)
    broker.start()
    try:
        yield f"127.0.0.1:{plain}", f"127.0.0.1:{asking}", mine
    finally:
        broker.kill()


@pytest.fixture
def alice(place: tuple[str, str, Path], capsys: Any, monkeypatch: Any) -> Callable[..., Any]:
    """A command as alice types it, beside the topics t, which she may READ, and t2."""
    opened, asking, mine = place
    for words in (("topics", "create", "t", "t2", "--if-not-exists"), ("acls", "add", "alice", "read", "topic:t")):
        assert run_typed(capsys, *words, "-b", opened).code == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x\n")))
    return lambda words: run_typed(capsys, *words.split(), "-b", asking, "--command-config", mine)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("produce t2", T2),
        ("produce t2 --create", T2),
        ("consume t2", T2),
        ("consume t2 -g g", T2),
        ("at t2 10:00", T2),
        ("offsets t2 now", T2),
        ("retention t2", T2),
        ("timeline t2", T2),
        ("topics describe t2", T2),
        ("topics describe t2 t", T2),
        ("topics delete t2 --yes", T2),
        ("topics alter t2 -p 5", T2),
        ("topics trim t2 --before now --yes", T2),
        ("topics create new", "not authorized for topic 'new'"),
        ("topics delete t --yes", "not authorized for topic 't'"),
        ("topics alter t -c retention.ms=1", "not authorized for topic 't'"),
        ("configs list topic t2", T2),
        ("configs set topic t2 retention.ms=5", T2),
        ("configs list group g", "not authorized for group 'g' (GROUP_AUTHORIZATION_FAILED)"),
        ("consume t -g g", "not authorized for group 'g' (GROUP_AUTHORIZATION_FAILED)"),
        ("groups describe g", "not authorized for group 'g' (GROUP_AUTHORIZATION_FAILED)"),
        ("groups lag g", "not authorized for group 'g' (GROUP_AUTHORIZATION_FAILED)"),
        ("groups reset g --to now", "not authorized for group 'g' (GROUP_AUTHORIZATION_FAILED)"),
        ("groups delete g --yes", "not authorized for group 'g'"),
        ("acls list", CLUSTER),
        ("acls add bob read topic:t", CLUSTER),
        ("users list", CLUSTER),
        ("users remove bob", CLUSTER),
    ],
)
def test_what_is_not_allowed_is_said_so(alice: Callable[..., Any], words: str, said: str) -> None:
    done = alice(words)
    assert said in done.err, done
    assert done.code == 1, done
    assert "there is no" not in done.err
    assert "do you mean" not in done.err


def test_a_topic_that_nobody_has_is_told_to_who_may_see_it(place: Any, capsys: Any) -> None:
    done = run_typed(capsys, "consume", "t3", "-b", place[0])
    assert (done.code, "there is no topic 't3'" in done.err) == (4, True), done


def test_who_may_write_to_no_topic_gets_no_producer_id(alice: Callable[..., Any]) -> None:
    done = alice("produce t")
    assert (done.code, "not authorized to write to any topic" in done.err) == (1, True), done


def test_the_library_names_transactional_ids_and_groups(
    place: tuple[str, str, Path], alice: Callable[..., Any]
) -> None:
    security = dict(line.split("=", 1) for line in place[2].read_text().splitlines())

    async def asked() -> list[str]:
        said = []
        producer = Producer(place[1], security=security, transactional_id="pay")
        with pytest.raises(KafkaError) as refused:
            async with producer, producer.transaction():
                await producer.send("t", b"x")
        said.append(str(refused.value))
        async with Consumer(place[1], security=security, group="g") as consumer:
            await consumer.subscribe(["t"])
            with pytest.raises(KafkaError) as refused:
                await consumer.poll(timeout_ms=20_000)
        said.append(str(refused.value))
        return said

    assert asyncio.run(asked()) == [
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED: not authorized for transactional id 'pay'",
        "GROUP_AUTHORIZATION_FAILED: not authorized for group 'g'",
    ]
