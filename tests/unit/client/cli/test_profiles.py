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


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """Makes a program that does something with the file."""

    def make(script, variable="VISUAL"):
        path = tmp_path / "an editor"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv(variable, f"'{path}' --wait")
        return path

    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    return make


def test_profiles_are_edited_and_saved_for_their_owner_alone(horolog, file, editor):
    editor("""printf '[profiles.shop]\\nbootstrap = "shop:1"\\n' >> "$2" """)
    ended = horolog("profiles", "edit")
    assert (ended.code, ended.out) == (0, f"{file}: shop\n")
    assert file.read_text().startswith("# Profiles of the command horolog")
    assert file.stat().st_mode & 0o777 == 0o600
    assert [one["name"] for one in horolog("profiles", "list", "-o", "json").json] == ["shop"]
    editor(': > "$2"', "EDITOR")
    editor("""printf '' > "$2" """)
    assert horolog("profiles", "edit").out == f"{file}: no profiles\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [("[profiles", "Expected"), ("[profiles.x]\nsecurity.protocol = 'NONE'\n", "one of PLAINTEXT")],
)
def test_a_draft_that_cannot_be_used_is_kept(horolog, file, editor, tmp_path, text, said):
    file.write_text(PROFILES)
    (tmp_path / "new").write_text(text)
    editor(f"""cp '{tmp_path / "new"}' "$2" """)
    ended = horolog("profiles", "edit")
    assert (ended.code, said in ended.err, "your text is kept there" in ended.err) == (1, True, True), ended
    assert file.read_text() == PROFILES
    draft = file.with_name("config.toml.draft")
    assert draft.read_text() == text
    editor("""grep -q profiles "$2" && printf '[profiles.good]\\nbootstrap = "a:1"\\n' > "$2" """)
    assert horolog("profiles", "edit").out == f"{file}: good\n"
    assert not draft.exists()


def test_an_editor_that_fails_changes_nothing(horolog, file, editor, monkeypatch):
    file.write_text(PROFILES)
    editor("exit 3")
    ended = horolog("profiles", "edit")
    assert (ended.code, "ended with code 3; nothing was changed" in ended.err) == (1, True)
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    missing = horolog("profiles", "edit")
    assert (missing.code, "there is no editor '/no/such/editor'; name one with VISUAL" in missing.err) == (1, True)
    assert (file.read_text(), [one.name for one in file.parent.iterdir()]) == (PROFILES, ["config.toml"])
