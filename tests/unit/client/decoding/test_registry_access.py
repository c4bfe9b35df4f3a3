"""A registry's address and credentials are read by the names that others have for them, and are in no text."""

import pytest

from horolog.client.decoding.registry_access import RegistryAccess, RegistryUrlError


def test_parts_of_an_address():
    access = RegistryAccess("https://schemas.example/apis/ccompat/v7/")
    assert (access.host, access.port, access.path) == ("schemas.example", 443, "/apis/ccompat/v7")
    assert access.name == "https://schemas.example:443/apis/ccompat/v7"
    assert RegistryAccess("http://[::1]:8081").name == "http://[::1]:8081"
    assert access.authorization is None


def test_credentials():
    assert RegistryAccess("http://r:1", user_info="a:b:c").authorization == "Basic YTpiOmM="
    assert RegistryAccess("http://r:1", token="t").authorization == "Bearer t"
    assert RegistryAccess("http://a:b%20c@r:1").authorization == "Basic YTpiIGM="
    assert RegistryAccess("http://a@r:1").authorization == "Basic YTo="


def test_secrets_are_in_no_text():
    access = RegistryAccess("http://alice:geheim@r:1", user_info="bob:geheim")
    assert "geheim" not in f"{access} {access!r} {access.name}"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "registry:8081"}, "http://HOST:PORT"),
        ({"url": "ftp://registry:8081"}, "http://HOST:PORT"),
        ({"url": "http://"}, "http://HOST:PORT"),
        ({"url": "http://schemas:geheim"}, "http://HOST:PORT"),
        ({"url": "http://r", "user_info": "a:geheim", "token": "geheim"}, "both are given"),
        ({"url": "http://r", "user_info": "geheim"}, "USER:PASSWORD"),
        ({"url": "http://r", "token": "geheim\r\nX: y"}, "contain control characters"),
    ],
)
def test_what_makes_no_sense_is_refused_without_the_secret(given, said):
    with pytest.raises(RegistryUrlError, match=said) as caught:
        RegistryAccess(**given)
    assert "geheim" not in str(caught.value)


def test_settings():
    assert RegistryAccess.of({}) is None
    settings = {
        "registry": "http://r:1",
        "schema.registry.basic.auth.user.info": "a:b",
        "schema.registry.ssl.ca.location": "ca.pem",
    }
    access = RegistryAccess.of(settings, timeout_ms=7)
    assert (access.host, access.user_info, access.ca_file, access.timeout_ms) == ("r", "a:b", "ca.pem", 7)
    assert RegistryAccess.of({"schema.registry.url": "http://r:2", "bearer.auth.token": "t"}).token == "t"
    assert RegistryAccess.of({"basic.auth.user.info": "a:b"}, "http://s").user_info == "a:b"


def test_credentials_of_one_registry_are_not_sent_to_another():
    settings = {"registry": "http://r:1/v6", "basic.auth.user.info": "a:b"}
    assert RegistryAccess.of(settings, "http://other:1").user_info is None
    assert RegistryAccess.of(settings, "http://r:1/v7").user_info == "a:b"


def test_whether_the_address_has_a_login():
    assert RegistryAccess("http://a:b@r:1").has_login_in_url
    assert RegistryAccess("http://a@r:1").has_login_in_url
    assert not RegistryAccess("http://r:1/p@x", user_info="a:b").has_login_in_url
