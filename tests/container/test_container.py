"""The image as an engine would run it: health, data from another container, a restart, a clean stop, foreign compose files."""

import json
import os
import socket
import urllib.request

import pytest

from tests.container.images import STOP_SECONDS, USER_ID, container, settings_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture
def volume(tmp_path):
    """A folder that belongs to the image's user, as an engine makes new volumes."""
    path = tmp_path / "volume"
    path.mkdir(mode=0o755)
    os.chown(path, USER_ID, USER_ID)
    return path


def listeners(inside, outside, http):
    """As in docker-compose.yml, on ports that are free here: containers share this machine's network."""
    return {
        "KAFKA_LISTENERS": f"INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{outside}",
        "KAFKA_ADVERTISED_LISTENERS": f"INSIDE://127.0.0.1:{inside},OUTSIDE://localhost:{outside}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "KAFKA_HOROLOG_HTTP_LISTEN": f"127.0.0.1:{http}",
    }


def produce(client, address, *values):
    done = client.call(
        "horolog", "produce", "--create", "-b", address, "t", stdin="".join(f"{one}\n" for one in values)
    )
    assert done.returncode == 0, done.stdout + done.stderr


def consume(client, address):
    done = client.call("horolog", "consume", "-b", address, "--format", "raw", "t")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


def test_the_image_is_small_in_what_it_may_do(image):
    found = settings_of(image)
    assert found["User"] == "horolog"
    assert "/var/lib/horolog" in found["Volumes"]
    assert found["StopSignal"] == "SIGTERM"


def test_the_hot_path_is_compiled(image):
    with container(image) as client:
        assert "compiled yes" in client.call("horolog", "version").stdout


@pytest.mark.long
def test_health_data_restart_and_stop(image, volume, tmp_path):
    inside, outside, http = free_ports(3)
    environment, volumes = listeners(inside, outside, http), {volume: "/var/lib/horolog"}
    address = f"127.0.0.1:{inside}"
    with container(image, environment, volumes) as broker, container(image) as client:
        assert not broker.healthy()
        broker.start(tmp_path / "first.log")
        broker.wait_until_healthy()
        assert broker.main_process().uids().real == USER_ID
        produce(client, address, "one", "two")
        assert consume(client, f"127.0.0.1:{outside}") == ["one", "two"]
        with urllib.request.urlopen(f"http://127.0.0.1:{http}/ready", timeout=10) as answer:
            assert json.load(answer)["ready"] is True
        code, seconds = broker.stop()
        assert (code, seconds < STOP_SECONDS) == (0, True), broker.said()
        assert (volume / ".kafka_cleanshutdown").exists()
    with container(image, environment, volumes) as broker, container(image) as client:
        broker.start(tmp_path / "second.log")
        broker.wait_until_healthy()
        produce(client, address, "three")
        assert consume(client, address) == ["one", "two", "three"]
        assert broker.stop()[0] == 0, broker.said()


def test_a_volume_at_another_images_place_is_used(image, volume, tmp_path):
    inside, outside, http = free_ports(3)
    environment = {
        **{key.replace("KAFKA_", "KAFKA_CFG_", 1): value for key, value in listeners(inside, outside, http).items()},
        "KAFKA_HOROLOG_HTTP_LISTEN": f"127.0.0.1:{http}",
        "KAFKA_CFG_PROCESS_ROLES": "broker,controller",
        "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": "0@kafka:9093",
        "ALLOW_PLAINTEXT_LISTENER": "yes",
    }
    with container(image, environment, {volume: "/bitnami/kafka"}) as broker:
        broker.start(tmp_path / "broker.log")
        broker.wait_until_healthy()
        assert broker.stop()[0] == 0
        assert (volume / "meta.properties").exists()


def test_bad_settings_end_it_with_a_reason(image):
    with container(image, {"KAFKA_NUM_PARTITIONS": "many"}) as broker:
        done = broker.call("/opt/horolog/app/container/entrypoint.sh", "serve")
        assert done.returncode == 2
        assert "num.partitions" in done.stderr
