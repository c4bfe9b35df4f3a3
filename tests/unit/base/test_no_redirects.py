"""A redirect ends the request: what was sent with it goes nowhere else."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import HTTPError
from urllib.request import Request

import pytest

from horolog.base import no_redirects

WAIT_S = 60


@pytest.fixture
def server():
    """(url, paths): answers with what the client sent; `/away` redirects to `/taken`."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            asked.append(self.path)
            self.send_response(302 if self.path == "/away" else 200)
            self.send_header("location", "/taken")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    listening = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{listening.server_port}", asked
    listening.shutdown()
    thread.join(WAIT_S)
    listening.server_close()


def test_an_answer_is_read(server):
    url, asked = server
    with no_redirects.opener().open(Request(f"{url}/here", b"secret"), timeout=WAIT_S) as answer:
        assert answer.read() == b"secret"
    assert asked == ["/here"]


def test_a_redirect_is_not_followed(server):
    url, asked = server
    with pytest.raises(HTTPError) as raised:
        no_redirects.opener().open(Request(f"{url}/away", b"secret"), timeout=WAIT_S)
    raised.value.close()
    assert raised.value.code == 302
    assert asked == ["/away"]


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x"])
def test_other_schemes_are_not_opened(url):
    assert no_redirects.opener().open(url, timeout=WAIT_S) is None
