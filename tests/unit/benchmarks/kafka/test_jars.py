"""Which jars a release needs and where they are looked for."""

import pytest

from benchmarks.kafka import jars


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HOROLOG_KAFKA_DIR", str(tmp_path))
    monkeypatch.delenv("HOROLOG_KAFKA_JARS", raising=False)
    return tmp_path


def put(folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()


def test_a_release_that_was_not_fetched_says_how_to(cache):
    with pytest.raises(jars.MissingJarsError, match=r"benchmarks\.kafka fetch 3\.9\.2"):
        jars.libs("3.9.2")


def test_a_fetched_release_is_not_fetched_again(cache):
    put(cache / "3.9.2" / "libs", "kafka_2.13-3.9.2.jar")
    assert jars.fetch("3.9.2") == cache / "3.9.2" / "libs"


def test_client_jars_come_oldest_first(cache):
    for version in ("4.3.1", "0.10.2.2", "3.9.2"):
        put(cache / version / "libs", f"kafka-clients-{version}.jar")
    assert [jars.release(jar.name) for jar in jars.client_jars()] == [(0, 10, 2, 2), (3, 9, 2), (4, 3, 1)]


def test_another_folder_of_client_jars_may_be_named(cache, tmp_path, monkeypatch):
    put(tmp_path / "elsewhere", "kafka-clients-4.0.0.jar")
    monkeypatch.setenv("HOROLOG_KAFKA_JARS", str(tmp_path / "elsewhere"))
    assert [jar.name for jar in jars.client_jars()] == ["kafka-clients-4.0.0.jar"]


@pytest.mark.parametrize(
    ("version", "scala"),
    [
        ("0.8.2.2", "2.10"),
        ("0.9.0.1", "2.11"),
        ("0.10.2.2", "2.11"),
        ("2.3.1", "2.12"),
        ("3.9.2", "2.13"),
        ("4.3.1", "2.13"),
    ],
)
def test_the_broker_is_of_the_scala_it_was_published_for(version, scala):
    assert jars.scala(version) == scala
    assert f"<artifactId>kafka_{scala}</artifactId><version>{version}</version>" in jars.project(version)


def test_the_project_names_no_address():
    assert "://" not in jars.project("4.3.1")
