"""`horolog profiles` lists the profiles of the file, without the secrets."""

import pytest

PROFILES = """
[profiles.default]
bootstrap = "usual:1"

[profiles.test]
bootstrap = "test:1"
"security.protocol" = "SASL_PLAINTEXT"
sasl = { mechanism = "PLAIN", username = "alice", password = "hush" }

[profiles.broken]
"security.protocol" = "NONE"
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("HOROLOG_PROFILE", raising=False)
    (tmp_path / "horolog").mkdir()
    return tmp_path / "horolog" / "config.toml"


def test_profiles_are_listed_without_their_secrets(horolog, file):
    file.write_text(PROFILES)
    ended = horolog("profiles")
    assert [line.split() for line in ended.out.splitlines()] == [
        ["PROFILE", "BOOTSTRAP", "PROTOCOL", "MECHANISM", "USER"],
        ["broken", "-", "-", "-", "-"],
        ["default", "*", "usual:1", "PLAINTEXT", "-", "-"],
        ["test", "test:1", "SASL_PLAINTEXT", "PLAIN", "alice"],
    ]
    found = horolog("profiles", "-o", "json")
    assert "one of PLAINTEXT" in found.json[0]["fault"]
    assert "hush" not in ended.out + found.out


def test_the_chosen_profile_is_marked(horolog, file, monkeypatch):
    file.write_text(PROFILES)
    monkeypatch.setenv("HOROLOG_PROFILE", "test")
    assert {each["name"]: each["chosen"] for each in horolog("profiles", "-o", "json").json} == {
        "broken": False,
        "default": False,
        "test": True,
    }


def test_without_a_file_there_is_none(horolog, file):
    ended = horolog("profiles")
    assert (ended.code, ended.out) == (0, "")
    assert f"there is no profile in {file}" in ended.err
