"""Asks the broker in this container whether it is ready; the exit code is the answer."""  # noqa: INP001 - a script of its own

import os
import socket
import sys

DEFAULT = "0.0.0.0:9464"


def main() -> int:
    port = int(os.environ.get("KAFKA_HOROLOG_HTTP_LISTEN", DEFAULT).rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 2) as peer:
        peer.sendall(b"GET /ready HTTP/1.0\r\n\r\n")
        answer = b""
        while chunk := peer.recv(4096):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    sys.stdout.write(body.decode())
    return 0 if head.split()[1:2] == [b"200"] else 1


if __name__ == "__main__":
    sys.exit(main())
