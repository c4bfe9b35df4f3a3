"""The notes on the settings when a broker starts."""

import logging

import pytest

from horolog.broker.config.settings import load
from horolog.broker.server.start_notes import notes, readable_secrets


def said(given, warnings=()):
    return list(notes(load(None, {}, given)[0], warnings))


def test_nothing_where_nothing_is_odd():
    assert said({}) == []


def test_warnings_of_reading_come_first_and_old_names_behind_them():
    levels, texts = zip(*said({"port": "9092", "host.name": "127.0.0.1"}, ["odd"]), strict=True)
    assert texts[0] == "odd"
    assert "Kafka 0.10 is used" in texts[1]
    assert set(levels) == {logging.WARNING}


@pytest.mark.parametrize(
    ("given", "is_told"),
    [
        ({"horolog.http.listen": "0.0.0.0:9464"}, True),
        ({"horolog.http.listen": ":9464"}, True),
        ({"horolog.http.listen": "broker.example:9464"}, True),
        ({"horolog.http.listen": "127.0.0.1:9464"}, False),
        ({"horolog.http.listen": "0.0.0.0:9464", "horolog.http.token": "a secret"}, False),
    ],
)
def test_metrics_that_everybody_may_read(given, is_told):
    found = [text for _, text in said(given)]
    assert [text for text in found if "set horolog.http.token" in text] == (found if is_told else [])
    assert bool(found) == is_told


def test_files_that_others_may_read(tmp_path):
    data, key = tmp_path / "data", tmp_path / "key.pem"
    data.mkdir()
    data.chmod(0o755)
    key.touch()
    key.chmod(0o644)
    given = {"log.dir": str(data), "ssl.keystore.location": str(key), "horolog.audit.file": str(tmp_path / "none")}
    ((level, text),) = said(given)
    assert level == logging.WARNING
    assert text.endswith(f"; chmod 750 {data} && chmod 640 {key}")


def test_a_file_of_settings_with_passwords_that_others_may_read(tmp_path):
    file = tmp_path / "server.properties"
    for text, is_told in (("node.id=1\n", False), ("horolog.http.token=a secret\n", True)):
        file.write_text(text)
        file.chmod(0o644)
        assert readable_secrets(file) == (
            [f"others on this machine may read {file} (0644); chmod 640 {file}"] if is_told else []
        )
    file.chmod(0o640)
    assert readable_secrets(file) == readable_secrets(None) == []


def test_listeners_that_are_not_opened_and_those_that_are_open_to_others():
    found = said(
        {
            "listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
    )
    assert found[0] == (logging.INFO, "listener CONTROLLER://:9093 is not opened, because horolog has no controller")
    assert found[1][0] == logging.WARNING
    assert "no authentication is configured" in found[1][1]
