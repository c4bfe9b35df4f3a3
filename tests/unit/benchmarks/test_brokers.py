"""Which command starts a checkout, of whatever age."""

import pytest

from benchmarks import brokers


@pytest.mark.parametrize(
    ("files", "module"),
    [
        (["horolog/client/cli/main.py", "client/cli/main.py"], "horolog.client.cli.main"),
        (["client/cli/main.py"], "client.cli.main"),
    ],
)
def test_a_checkout_is_started_by_the_command_that_it_has(tmp_path, files, module):
    for one in files:
        (tmp_path / one).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / one).touch()
    assert brokers.module_of(tmp_path) == module


def running_on(folder):
    return brokers.Running("horolog", "127.0.0.1:1", 1, folder, 0.1)


def test_a_topic_is_found_wherever_its_broker_has_its_data(tmp_path):
    for name in ("bench-4-0", "logs/bench-4-12", "bench-40-0", "bench-4-0.ab-delete"):
        (tmp_path / name).mkdir(parents=True)
    assert {path.name for path in running_on(tmp_path).folders_of("bench-4")} == {"bench-4-0", "bench-4-12"}


def test_deleted_topics_are_waited_for_and_not_for_ever(tmp_path, monkeypatch):
    gone = tmp_path / "logs" / "bench-0.ab-delete"
    gone.mkdir(parents=True)
    slept = []
    monkeypatch.setattr(brokers, "REMOVAL_SECONDS", 0.05)
    monkeypatch.setattr(brokers.time, "sleep", slept.append)
    running_on(tmp_path).wait_until_removed()
    assert slept
    monkeypatch.setattr(brokers, "REMOVAL_SECONDS", 60.0)
    monkeypatch.setattr(brokers.time, "sleep", lambda _: gone.rmdir())
    running_on(tmp_path).wait_until_removed()
    assert not gone.exists()


def test_both_kinds_of_brokers_remove_deleted_topics_at_once(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(brokers, "_start_horolog", lambda _name, _data, settings, *_: given.append(settings))
    monkeypatch.setattr(
        brokers.kafka,
        "start",
        lambda _version, data, settings, **_: given.append(settings) or brokers.kafka.Node("4.3.1", "", 1, data, 0.1),
    )
    brokers.start("horolog", tmp_path, {"a": "b"})
    brokers.start("4.3.1", tmp_path, {"a": "b"})
    assert given[0] == given[1] == brokers.SETTINGS | {"a": "b"}
