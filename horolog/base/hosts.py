"""What the name or address of a host alone says about it; pure."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it; of a name other than localhost that is not known."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
