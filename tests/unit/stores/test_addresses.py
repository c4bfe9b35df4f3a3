"""One client for each address of a store."""

import pytest

pytest.importorskip("obstore")

from horolog.stores.addresses import MOST_ADDRESSES, places, ways_to
from horolog.stores.place import StorePlace


def resolving(*addresses):
    return lambda host, port: [(2, 1, 6, "", (address, port)) for address in (*addresses, *addresses)]


def place(endpoint, url="s3://lake/f"):
    return StorePlace.from_environment(url, endpoint, {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})


def endpoints(endpoint, resolve):
    return [dict(one.settings).get("endpoint") for one in places(place(endpoint), resolve)]


def test_each_address_of_a_name_is_a_way():
    resolve = resolving("10.0.0.2", "10.0.0.1", "fd00::1")
    assert endpoints("http://store:7070", resolve) == [
        "http://10.0.0.1:7070",
        "http://10.0.0.2:7070",
        "http://[fd00::1]:7070",
    ]
    assert endpoints("http://store", resolve)[0] == "http://10.0.0.1"


def test_a_certificate_is_for_the_name():
    assert endpoints("https://store:7070", resolving("10.0.0.1", "10.0.0.2")) == ["https://store:7070"] * 2


def test_a_store_with_one_address_or_none_has_one_way():
    def unknown(host, port):
        raise OSError("no such host")

    assert endpoints("http://store:7070", resolving("10.0.0.1")) == ["http://store:7070"]
    assert endpoints("http://store:7070", unknown) == ["http://store:7070"]
    assert endpoints("", resolving("10.0.0.1", "10.0.0.2")) == [None]
    assert len(ways_to(place("http://127.0.0.1:7070"))) == 1


def test_the_ways_are_bounded():
    assert len(ways_to(place("http://store"), resolving(*(f"10.0.0.{n}" for n in range(40))))) == MOST_ADDRESSES
