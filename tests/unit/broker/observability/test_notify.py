"""The supervisor (systemd) is told when the broker is ready and when it stops, and its silence is no fault."""

import socket

import pytest

from horolog.broker.observability.notify import READY, notify

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no Unix sockets here")


@pytest.mark.parametrize("abstract", [False, True])
def test_a_listener_hears_it(tmp_path, abstract):
    name = f"horolog-test-{tmp_path.name}"
    address = f"@{name}" if abstract else str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0{name}" if abstract else address)
        listener.settimeout(60)
        assert notify({"NOTIFY_SOCKET": address}, READY, "here")
        assert listener.recv(1000) == b"READY=1\nSTATUS=here"


@pytest.mark.parametrize("address", ["", "relative", "/nowhere/at/all"])
def test_nobody_listens(address):
    assert not notify({"NOTIFY_SOCKET": address}, READY, "here")
