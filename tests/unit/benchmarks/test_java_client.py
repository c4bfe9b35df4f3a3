"""How Kafka's own program is called, and which figures are taken from its output."""

import subprocess

import pytest

from benchmarks import java_client
from benchmarks.peer import BrokerError

SAID = """\
49000 records sent, 9800.0 records/sec (0.93 MB/sec), 200.1 ms avg latency, 500.0 ms max latency.
50000 records sent, 24084.778420 records/sec (2.30 MB/sec), 301.07 ms avg latency, 525.00 ms max latency, 267 ms 50th, 477 ms 95th, 499 ms 99th, 518 ms 99.9th.
"""


def test_the_total_is_read_from_the_last_line():
    count, seconds, latencies = java_client.parse_total(SAID)
    assert (count, latencies) == (50_000, (267.0, 499.0, 518.0))
    assert seconds == pytest.approx(2.076, abs=0.001)


def test_output_without_a_total_is_a_fault():
    with pytest.raises(BrokerError, match="no total"):
        java_client.parse_total("49000 records sent, 9800.0 records/sec (0.93 MB/sec), 200.1 ms avg latency.\n")


@pytest.fixture
def at_hand(monkeypatch, tmp_path):
    monkeypatch.setattr(java_client.shutil, "which", lambda _name: "/java")
    monkeypatch.setattr(java_client, "libs", lambda _release: tmp_path)


def test_only_the_codec_differs_from_the_defaults(at_hand, tmp_path):
    words = java_client.command("host:1", "topic", 10, 100, "zstd")
    assert words[:4] == ["/java", "-Xmx512m", "-cp", f"{tmp_path}/*"]
    assert words[words.index("--producer-props") + 1 :] == ["bootstrap.servers=host:1", "compression.type=zstd"]
    assert java_client.command("host:1", "topic", 10, 100, "")[-1] == "bootstrap.servers=host:1"


def test_what_is_missing_is_a_fault(monkeypatch):
    monkeypatch.setattr(java_client.shutil, "which", lambda _name: None)
    with pytest.raises(BrokerError, match="needs Java"):
        java_client.command("host:1", "topic", 10, 100, "")
    monkeypatch.setattr(java_client.shutil, "which", lambda _name: "/java")
    monkeypatch.setenv("HOROLOG_KAFKA_DIR", "/nowhere")
    with pytest.raises(BrokerError, match="no jars of Kafka"):
        java_client.command("host:1", "topic", 10, 100, "")


@pytest.mark.parametrize(
    ("code", "said", "records", "why"),
    [
        (1, "no memory", 50_000, "no memory"),
        (0, SAID + "TimeoutException: late", 50_000, "late"),
        (0, SAID, 60_000, "50000 of 60000"),
    ],
)
def test_a_run_that_failed_is_no_result(at_hand, monkeypatch, code, said, records, why):
    done = subprocess.CompletedProcess([], code, said, "")
    monkeypatch.setattr(java_client.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(BrokerError, match=why):
        java_client.produce("host:1", "topic", records, 100, "zstd")


def test_a_run_has_the_figures_that_it_printed(at_hand, monkeypatch):
    done = subprocess.CompletedProcess([], 0, SAID, "")
    monkeypatch.setattr(java_client.subprocess, "run", lambda *_, **__: done)
    assert java_client.produce("host:1", "topic", 50_000, 100, "") == java_client.parse_total(SAID)
