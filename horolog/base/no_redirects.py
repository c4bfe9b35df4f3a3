"""Opens URLs and follows no redirect: a secret in a request reaches no other address than the one that was checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urllib.request import OpenerDirector


def opener() -> OpenerDirector:
    """For http and https, through the proxy of the environment; a redirect raises HTTPError."""
    from urllib import request

    made = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPDefaultErrorHandler,
        request.HTTPErrorProcessor,
    ):
        made.add_handler(handler())
    return made
