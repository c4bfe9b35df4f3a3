"""A question by HTTP has an answer in its time and size, or a reason why not."""

import ssl

import pytest
import trustme

from horolog.client.decoding.registry_access import RegistryAccess
from horolog.client.wire import http_get as http
from tests.support.registry_server import registry_server


async def test_an_answer():
    async with registry_server({"/a": {"x": 1}, "/b": 404}) as server:
        assert await http.get(server.access(), "/a") == (200, b'{"x": 1}')
        assert (await http.get(server.access(user_info="a:b"), "/b")).status == 404
        assert "Authorization" not in server.asked[0]
        assert "Authorization: Basic YTpi\r\n" in server.asked[1]


async def test_an_answer_in_chunks():
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    async with registry_server({"/a": raw}) as server:
        assert await http.get(server.access(), "/a") == (200, b"abc")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "not HTTP"),
        (b"hello\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000, "answers more than"),
    ],
)
async def test_answers_that_are_none(raw, said):
    async with registry_server({"/a": raw}) as server:
        with pytest.raises(http.NoAnswer, match=said):
            await http.get(server.access(), "/a", most_bytes=4000)


async def test_a_slow_server_is_not_waited_for():
    async with registry_server({"/a": {}}) as server:
        server.delay = 30
        with pytest.raises(http.NoAnswer, match="did not answer within 50 ms"):
            await http.get(server.access(50), "/a")


async def test_nobody_there(unused_tcp_port):
    with pytest.raises(http.NoAnswer, match="cannot be reached"):
        await http.get(RegistryAccess(f"http://127.0.0.1:{unused_tcp_port}"), "/a")


async def test_tls(tmp_path):
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    async with registry_server({"/a": {}}, tls) as server:
        url = f"https://127.0.0.1:{server.port}"
        assert (await http.get(RegistryAccess(url, ca_file=str(tmp_path / "ca.pem")), "/a")).status == 200
        with pytest.raises(http.NoAnswer, match="cannot be reached over TLS"):
            await http.get(RegistryAccess(url), "/a")
        with pytest.raises(http.NoAnswer, match="is not a file of certificates"):
            await http.get(RegistryAccess(url, ca_file=str(tmp_path / "gone.pem")), "/a")
