"""Keys of users and passwords among the settings lie encrypted on the disk, of one process and of workers; over a whole broker."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.process import free_ports
from horolog import Client
from tests.support.broker_process import BrokerProcess
from tests.support.certificates import Certificates

SECRET = "password.encoder.secret"
OLD_SECRET = "password.encoder.old.secret"
OWN = "a secret of the owner"


class Place:
    """A broker where alice comes in by SCRAM, and whose TLS key is set while it runs."""

    def __init__(self, folder: Path, workers: str, horolog: Callable[..., Any]) -> None:
        self.horolog = horolog
        self.certificates = Certificates(folder)
        self.plain, self.asking, tls = free_ports(3)
        given = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.plain},SASL_PLAINTEXT://127.0.0.1:{self.asking},SSL://127.0.0.1:{tls}",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "horolog.workers": workers,
        }
        self.settings = self.certificates.settings(**given)
        self.data = folder / "data"
        self.broker = BrokerProcess(self.data, self.settings)
        self.password = folder / "password"
        self.password.write_text("the password of alice")

    def start(self, **secrets: str) -> None:
        self.broker.settings = self.settings | {key.replace("_", "."): value for key, value in secrets.items()}
        self.broker.start()

    def change(self) -> None:
        """A user, and a password among the settings."""
        address = f"127.0.0.1:{self.plain}"
        words = ("users", "add", "alice", "--password-file", self.password, "-b", address)
        assert self.horolog(*words).code == 0
        key = "listener.name.ssl.ssl.key.password"
        done = self.horolog("configs", "set", "broker", "1", f"{key}=hush-hush-hush", "-b", address)
        assert done.code == 0, done

    def on_disk(self) -> str:
        files = [one for one in self.data.rglob("*") if one.is_file()]
        return "\n".join(one.read_bytes().decode("latin-1") for one in files)

    def check_login(self) -> None:
        async def ask() -> None:
            security = {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "alice",
                "sasl.password": self.password.read_text(),
            }
            async with Client(f"127.0.0.1:{self.asking}", security=security) as client:
                await client.metadata([])

        asyncio.run(ask())


@pytest.fixture(params=["1", pytest.param("2", marks=pytest.mark.slow)])
def place(request: Any, tmp_path: Path, horolog: Callable[..., Any]) -> Any:
    made = Place(tmp_path, request.param, horolog)
    yield made
    made.broker.kill()


SHOWN = ("hush-hush-hush", "stored_key", '"salt"')


def shown(place: Place) -> bool:
    text = place.on_disk()
    return any(one in text for one in SHOWN)


def refused(place: Place, **secrets: str) -> str:
    """What it says; it exits as for any setting that is wrong."""
    place.broker.settings = place.settings | {key.replace("_", "."): value for key, value in secrets.items()}
    done = subprocess.run(place.broker.command(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_they_are_encrypted_while_it_runs_and_after_a_stop(place: Place) -> None:
    place.start(password_encoder_secret=OWN)
    place.change()
    assert not shown(place)
    place.check_login()
    place.broker.stop()
    assert not shown(place)
    assert "$encrypted$" in place.on_disk()
    assert "password.encoder.secret: horolog-cluster:" in refused(place)
    assert "not by this password.encoder.secret" in refused(place, password_encoder_secret="another")
    place.start(password_encoder_secret=OWN)
    place.check_login()
    place.broker.stop()
    place.start(password_encoder_secret="newer", password_encoder_old_secret=OWN)
    place.check_login()
    place.broker.stop()
    place.start(password_encoder_secret="newer")
    place.check_login()
    place.broker.kill()
    place.start(password_encoder_old_secret="newer")
    place.check_login()
    place.broker.stop()
    assert "$encrypted$" not in place.on_disk()


def test_what_lay_there_plain_is_told_and_encrypted_by_the_next_start(place: Place) -> None:
    place.start()
    place.change()
    place.broker.stop()
    assert shown(place)
    place.start()
    assert "has 3 unencrypted secrets (users, passwords); password.encoder.secret encrypts them" in place.broker.log()
    place.broker.stop()
    before = len(place.broker.log())
    place.start(password_encoder_secret=OWN)
    place.check_login()
    assert "secrets (users" not in place.broker.log()[before:]
    place.broker.stop()
    assert not shown(place)


def test_the_command_for_folders_needs_the_secret_as_well(
    tmp_path: Path, horolog: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    password = tmp_path / "password"
    password.write_text("the password of alice")
    monkeypatch.setenv("KAFKA_PASSWORD_ENCODER_SECRET", OWN)
    data = tmp_path / "data"
    assert horolog("users", "add", "alice", "--password-file", password, "--data", data).code == 0
    assert "stored_key" not in (data / "horolog-cluster").read_text()
    assert "alice" in horolog("users", "list", "--data", data).out
    monkeypatch.delenv("KAFKA_PASSWORD_ENCODER_SECRET")
    done = horolog("users", "list", "--data", data)
    assert (done.code, "KAFKA_PASSWORD_ENCODER_SECRET" in done.err) == (1, True), done
    assert horolog("acls", "list", "--data", data).code == 0
