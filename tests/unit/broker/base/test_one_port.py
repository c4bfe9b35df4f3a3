"""One port for all addresses of a host: the system may choose another for each, and somebody may have that at one of them."""

import errno
import socket
from types import SimpleNamespace

import pytest

from horolog.broker.base.one_port import HTTP_LISTEN, LISTEN, PORT_TRIES, at_one_port, cannot_listen, free, port_of


class System:
    """Chooses ports as it is told: a tuple has the ports of all addresses, None is a port that somebody has."""

    def __init__(self, *chosen):
        self.chosen = list(chosen)
        self.asked = []
        self.closed = []

    async def listen(self, port):
        self.asked.append(port)
        ports = self.chosen.pop(0) if len(self.chosen) > 1 else self.chosen[0]
        if ports is None:
            raise OSError("in use")
        sockets = [SimpleNamespace(getsockname=lambda one=one: ("::", one, 0, 0)) for one in ports]
        return SimpleNamespace(sockets=sockets, close=lambda: self.closed.append(ports))


async def test_one_address_or_a_port_that_is_named_is_listened_on_at_once():
    for chosen in ((9092,), (9092, 9092)):
        system = System(chosen)
        assert port_of(await at_one_port(system.listen, 9092)) == 9092
        assert (system.asked, system.closed) == ([9092], [])


async def test_the_port_of_the_first_address_is_asked_for_at_all():
    system = System((1111, 2222), (1111, 1111))
    assert port_of(await at_one_port(system.listen, 0)) == 1111
    assert (system.asked, system.closed) == ([0, 1111], [(1111, 2222)])


async def test_a_port_that_somebody_has_at_the_other_address_is_not_taken():
    system = System((1111, 2222), None, (3333, 4444), None, (5555, 5555))
    assert port_of(await at_one_port(system.listen, 0)) == 5555
    assert system.asked == [0, 1111, 0, 3333, 0]
    assert system.closed == [(1111, 2222), (3333, 4444)]


async def test_a_system_that_never_gives_one_port_is_not_asked_for_ever():
    system = System((1111, 2222))
    assert port_of(await at_one_port(system.listen, 0)) == 1111
    assert len(system.asked) == PORT_TRIES + 1


async def test_a_port_that_is_taken_is_told():
    with pytest.raises(OSError, match="in use"):
        await at_one_port(System(None).listen, 9092)


@pytest.mark.parametrize(
    ("host", "names", "text"),
    [
        ("127.0.0.1", LISTEN, "cannot listen on 127.0.0.1:9092: address already in use; --listen HOST:PORT, or"),
        ("::1", HTTP_LISTEN, "cannot listen on [::1]:9092: address already in use; the setting horolog.http.listen"),
        ("", LISTEN, "cannot listen on *:9092: address already in use; "),
    ],
)
def test_the_error_names_the_address_and_what_names_another(host, names, text):
    error = cannot_listen(OSError(errno.EADDRINUSE, "a library's words"), host, 9092, names)
    assert error.errno == errno.EADDRINUSE
    assert str(error).startswith(text)
    assert str(error).endswith(" names another address")


def test_an_error_without_a_number_keeps_its_words():
    assert "cannot listen on *:1: no such host;" in str(cannot_listen(OSError("no such host"), "", 1, LISTEN))


@pytest.mark.parametrize("host", ["127.0.0.1", ""])
def test_a_free_port_can_be_listened_on(host):
    with socket.create_server((host, free(host))) as listening:
        assert listening.getsockname()[1]
