"""The check that the image runs, as a program, against a real broker: with HTTP and without it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.certificates import Certificates

SCRIPT = Path(__file__).resolve().parents[3] / "config" / "container" / "healthcheck.py"


def check(**environ):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("KAFKA_")}
    done = subprocess.run(
        [sys.executable, "-I", SCRIPT], env=kept | environ, capture_output=True, text=True, timeout=30, check=False
    )
    return done.returncode, done.stdout + done.stderr


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", ""])
def test_with_http_what_ready_says_counts(start_broker, host):
    http = f"{host}:{free_port()}"
    broker = start_broker(horolog__http__listen=http)
    code, said = check(KAFKA_HOROLOG_HTTP_LISTEN=http)
    assert (code, '"ready": true' in said) == (0, True), said
    broker.stop()
    assert check(KAFKA_HOROLOG_HTTP_LISTEN=http)[0] != 0


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    """That of a broker which runs, and that of one which was stopped."""
    folder = tmp_path_factory.mktemp("checked")
    running, stopped = BrokerProcess(folder / "running").start(), BrokerProcess(folder / "stopped").start()
    stopped.stop()
    yield running.port, stopped.port
    running.stop()


@pytest.mark.parametrize(
    "listeners",
    [
        {"KAFKA_LISTENERS": "PLAINTEXT://127.0.0.1:{port}"},
        {"KAFKA_LISTENERS": "CONTROLLER://:{closed},OUTSIDE://0.0.0.0:{port}"},
        {"KAFKA_CFG_LISTENERS": "PLAINTEXT://:{port}"},
        {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:{port}"},
    ],
)
def test_an_empty_http_address_leaves_the_check_to_the_listeners(ports, listeners):
    closed = free_port()

    def checked(port):
        environ = {name: text.format(port=port, closed=closed) for name, text in listeners.items()}
        return check(KAFKA_HOROLOG_HTTP_LISTEN="", **environ)

    running, stopped = ports
    code, said = checked(running)
    assert code == 0, said
    assert "HTTP is off" in said
    assert checked(stopped)[0] == 1


def test_with_a_token_and_tls(start_broker, tmp_path):
    given = Certificates(tmp_path).settings(listeners="PLAINTEXT://127.0.0.1:0", horolog_http_protocol="HTTPS")
    http = f"127.0.0.1:{free_port()}"
    given |= {"horolog.http.listen": http, "horolog.http.token": "secret"}
    start_broker(**{key.replace(".", "__"): value for key, value in given.items()})
    environ = {"KAFKA_HOROLOG_HTTP_LISTEN": http, "KAFKA_HOROLOG_HTTP_PROTOCOL": "HTTPS"}
    code, said = check(**environ, KAFKA_HOROLOG_HTTP_TOKEN="secret")
    assert (code, '"ready": true' in said) == (0, True), said
    assert check(**environ, KAFKA_HOROLOG_HTTP_TOKEN="wrong")[0] == 1


@pytest.mark.parametrize("client_auth", ["none", "required"])
def test_a_listener_with_tls_answers_as_well(start_broker, tmp_path, client_auth):
    given = Certificates(tmp_path).settings(ssl_client_auth=client_auth)
    broker = start_broker(**{key.replace(".", "__"): value for key, value in given.items()})
    code, said = check(KAFKA_HOROLOG_HTTP_LISTEN="", KAFKA_LISTENERS=f"SSL://:{broker.port}")
    assert code == 0, said


def test_somebody_else_on_the_port_is_no_broker():
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        environ = {"KAFKA_HOROLOG_HTTP_LISTEN": "", "KAFKA_LISTENERS": f"PLAINTEXT://:{port}"}
        assert check(**environ)[0] == 1
