"""Asks the broker in this container whether it is ready; the exit code is the answer.

Over HTTP where KAFKA_HOROLOG_HTTP_LISTEN says, else where the image listens, with the token and over TLS where it asks for them. Where
that is empty there is no HTTP, and whether the broker answers Kafka's ApiVersions, or a TLS handshake, on one of its listeners is all that can
be known from here. Whose certificate it is does not matter: nothing but the token is said, and to nobody outside of the container.
"""  # noqa: INP001 - a script of its own

import os
import re
import socket
import ssl
import sys
from collections.abc import Mapping

HTTP_DEFAULT = "127.0.0.1:9464"
LISTENERS_DEFAULT = "PLAINTEXT://:9092"
LISTENERS = ("KAFKA_LISTENERS", "KAFKA_CFG_LISTENERS", "KAFKA_ADVERTISED_LISTENERS", "KAFKA_CFG_ADVERTISED_LISTENERS")
LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "::1"}  # noqa: S104 - compared with, not bound
API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 ffff")  # size, api 18, version 0, a number, no client id
SECONDS = 2


def connect(host: str, port: str) -> socket.socket:
    return socket.create_connection((LOOPBACK.get(host, host.strip("[]")), int(port)), SECONDS)


def secured(peer: socket.socket) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(peer)


def is_ready(address: str, token: str | None = None, *, over_tls: bool = False) -> bool:
    """What /ready says; its words go to whoever looks at the check."""
    host, _, port = address.rpartition(":")
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    connected = connect(host, port)
    with secured(connected) if over_tls else connected as peer:
        peer.sendall(f"GET /ready HTTP/1.0\r\n{bearer}\r\n".encode())
        answer = b""
        while chunk := peer.recv(4096):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    sys.stdout.write(body.decode())
    return head.split()[1:2] == [b"200"]


def speaks_kafka(host: str, port: str) -> bool:
    try:
        with connect(host, port) as peer:
            peer.sendall(API_VERSIONS)
            answer = peer.recv(10)
    except OSError:
        return False
    return answer[4:] == bytes.fromhex("00000001 0000")


def speaks_tls(host: str, port: str) -> bool:
    """Whether there is a handshake; a broker that asks for a certificate says so, which is an answer as well."""
    try:
        with connect(host, port) as peer, secured(peer) as secure:
            secure.sendall(API_VERSIONS)
            return bool(secure.recv(10))
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False


def main(environ: Mapping[str, str] = os.environ) -> int:
    def given(name: str, default: str = "") -> str:
        return environ.get(f"KAFKA_{name}", environ.get(f"KAFKA_CFG_{name}", default))

    http = given("HOROLOG_HTTP_LISTEN", HTTP_DEFAULT)
    if http:
        over_tls = given("HOROLOG_HTTP_PROTOCOL") == "HTTPS"
        return 0 if is_ready(http, given("HOROLOG_HTTP_TOKEN"), over_tls=over_tls) else 1
    listeners = next((environ[name] for name in LISTENERS if environ.get(name)), LISTENERS_DEFAULT)
    found = re.findall(r"://([^,]*):(\d+)", listeners)
    answers = any(speaks_kafka(host, port) or speaks_tls(host, port) for host, port in found)
    sys.stdout.write(f"HTTP is off; {listeners} {'answers' if answers else 'does not answer'}\n")
    return 0 if answers else 1


if __name__ == "__main__":
    sys.exit(main())
