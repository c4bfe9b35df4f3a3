"""Runs `horolog` with the arguments behind a socket's path, as a fork of the process that listens there.

Takes a hundredth of a second, so it is read by an interpreter without `site`, and imports only modules that are built into that one.
"""

import _signal  # type: ignore[import-not-found]  # of CPython, without stubs
import _socket  # type: ignore[import-not-found]
import marshal
import os
import sys

NUMBER_BYTES = 4


def number(connection: _socket.socket) -> int:
    return int.from_bytes(connection.recv(NUMBER_BYTES), sys.byteorder, signed=True)


def main() -> None:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    connection.connect(sys.argv[1])
    request = marshal.dumps((sys.argv[2:], dict(os.environ), os.getcwd()))  # noqa: PTH109 - pathlib would take longer to import
    streams = b"".join(stream.to_bytes(NUMBER_BYTES, sys.byteorder) for stream in (0, 1, 2))
    connection.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    pid = number(connection)
    for each in (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM):
        _signal.signal(each, lambda got, _: os.kill(pid, got))
    code = os.waitstatus_to_exitcode(number(connection))
    if code < 0:
        _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main()
