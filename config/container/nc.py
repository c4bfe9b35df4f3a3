#!/opt/horolog/bin/python -I
"""`nc -z HOST PORT`, which health checks of compose files call: whether somebody listens there."""

import argparse
import socket
import sys

DEFAULT_WAIT_S = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="nc", description="Only the look with -z is here.")
    parser.add_argument("-z", action="store_true", required=True, help="only look whether the port is open")
    parser.add_argument("-v", action="store_true", help="say what was found")
    parser.add_argument("-n", action="store_true", help="HOST is an address")
    parser.add_argument("-w", type=float, default=DEFAULT_WAIT_S, metavar="SECONDS")
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    given = parser.parse_args()
    try:
        socket.create_connection((given.host, given.port), given.w).close()
    except OSError as error:
        if given.v:
            sys.stderr.write(f"nc: connect to {given.host} port {given.port} (tcp) failed: {error}\n")
        return 1
    if given.v:
        sys.stderr.write(f"Connection to {given.host} {given.port} port [tcp/*] succeeded!\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
