"""Reports the broker's state to systemd: the messages of sd_notify, sent to the socket that NOTIFY_SOCKET names."""

import contextlib
import socket
from collections.abc import Mapping

READY = "READY=1"
STOPPING = "STOPPING=1"


def notify(environ: Mapping[str, str], state: str, status: str) -> bool:
    """Send a state and a sentence for people; False if no supervisor listens, which is no reason to fail."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")) or not hasattr(socket, "AF_UNIX"):
        return False
    name = "\0" + address[1:] if address.startswith("@") else address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(name)
        sender.sendall(f"{state}\nSTATUS={status}".encode())
        return True
    return False
