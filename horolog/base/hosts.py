"""What the name or address of a host alone says about it; pure."""

import ipaddress

MAX_PORT = 65535


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it; of a name other than localhost that is not known."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_and_port(text: str) -> tuple[str, int]:
    """HOST:PORT in its two parts, without an IPv6 address's brackets; raises ValueError with the reason."""
    host, separator, port = text.rpartition(":")
    if not (separator and port.isascii() and port.isdigit() and int(port) <= MAX_PORT):
        raise ValueError(f"a port from 0 to {MAX_PORT} belongs behind the host: HOST:PORT")
    bracketed = host.startswith("[") and host.endswith("]")
    if ":" in host and not bracketed:
        raise ValueError("an IPv6 address needs brackets: [HOST]:PORT")
    return (host[1:-1] if bracketed else host), int(port)
