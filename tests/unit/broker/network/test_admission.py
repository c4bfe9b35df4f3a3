"""How many may come: over all listeners, from one address, with exceptions, and as the bounds change."""

import resource

import pytest

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Settings, load
from horolog.broker.network import descriptors
from horolog.broker.network.admission import Admission


def settings(**chosen: object) -> Settings:
    return load(None, {}, {key.replace("_", "."): str(value) for key, value in chosen.items()})[0]


def test_connections_in_all_are_bounded() -> None:
    admission = Admission(settings(max_connections=2))
    assert admission.enter("a") is None
    assert admission.enter("b") is None
    assert "max.connections (2)" in (admission.enter("c") or "")
    admission.leave("c")
    admission.leave("a")
    assert admission.enter("d") is None


def test_connections_of_one_address_are_bounded_and_some_addresses_otherwise() -> None:
    admission = Admission(settings(max_connections_per_ip=1, max_connections_per_ip_overrides="b:2, ::1:0"))
    assert admission.enter("a") is None
    assert "max.connections.per.ip (1)" in (admission.enter("a") or "")
    assert [admission.enter("b") is None for _ in range(3)] == [True, True, False]
    assert "per.ip (0)" in (admission.enter("::1") or "")


def test_bounds_may_change_while_it_counts() -> None:
    admission = Admission(settings(max_connections=1))
    admission.enter("a")
    admission.allow(settings(max_connections=3, max_connections_per_ip=1))
    assert admission.enter("b") is None
    assert "per.ip" in (admission.enter("b") or "")


@pytest.mark.parametrize("wrong", ["127.0.0.1", "127.0.0.1:many", ":5"])
def test_an_exception_that_makes_no_sense_is_named(wrong: str) -> None:
    with pytest.raises(SettingsError, match="ADDRESS:COUNT"):
        Admission(settings(max_connections_per_ip_overrides=wrong))


def test_the_log_keeps_its_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 100))
    admission = Admission(settings())
    refused = [admission.enter(f"{number}") for number in range(100)]
    assert refused[: descriptors.LEAST_CONNECTIONS] == [None] * descriptors.LEAST_CONNECTIONS
    assert "descriptors" in (refused[-1] or "")
