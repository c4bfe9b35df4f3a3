"""The principal of a request, in Kafka's words: a type and a name, such as `User:alice`."""

from __future__ import annotations

from typing import NamedTuple


class Principal(NamedTuple):
    """The result of authentication, on which authorisation and quotas depend."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


USER = "User"
ANONYMOUS = Principal(USER, "ANONYMOUS")
"""Every client of a listener without authentication."""
