"""A broker process as whoever runs it sees it: its HTTP server, its log lines, what systemd hears, and a scrape under load."""

import http.client
import json
import socket
import urllib.request
from collections import Counter

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
        return answer.read().decode()


def samples(port, name):
    """By their labels; those of several workers together."""
    found = Counter()
    for family in text_string_to_metric_families(get(port, "/metrics")):
        for one in family.samples:
            if one.name == name:
                found[tuple(sorted((key, value) for key, value in one.labels.items() if key != "worker"))] += one.value
    return found


@pytest.mark.one_broker("its metrics have the partitions that it leads")
def test_a_process_from_start_to_stop(start_broker, tmp_path, monkeypatch):
    port = free_port()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(tmp_path / "notify"))
        supervisor.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        broker = start_broker(horolog__http__listen=f"127.0.0.1:{port}", horolog__log__format="json")
        assert supervisor.recv(1000).startswith(b"READY=1\n")
        assert json.loads(get(port, "/ready"))["ready"] is True
        producer = Producer({"bootstrap.servers": broker.address})
        for number in range(500):
            producer.produce("t", str(number))
        assert producer.flush(20) == 0
        with socket.create_connection((broker.host, broker.port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert stranger.recv(100) == b""
        assert samples(port, "horolog_partition_end_offset")[("partition", "0"), ("topic", "t")] == 500
        assert samples(port, "horolog_request_seconds_count")[("api", "Produce"),] >= 1
        assert sum(samples(port, "horolog_sync_seconds_count").values()) >= 1
        assert samples(port, "process_resident_memory_bytes")[()] > 10_000_000
        assert broker.stop() == 0
        assert supervisor.recv(1000).startswith(b"STOPPING=1\n")
    lines = [json.loads(line) for line in broker.log().splitlines()]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    (closed,) = [line for line in lines if "HTTP request" in line["message"]]
    assert (closed["peer"], closed["listener"]) == ("127.0.0.1", "PLAINTEXT")


def test_a_head_request_and_two_scrapes_on_one_client(start_broker):
    port = free_port()
    start_broker(horolog__http__listen=f"127.0.0.1:{port}")
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    for method in ("HEAD", "GET", "GET"):
        client.request(method, "/metrics")
        answer = client.getresponse()
        assert answer.status == 200
        assert bool(answer.read()) == (method == "GET")
