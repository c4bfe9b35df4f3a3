"""Shells complete names of a running broker, of profiles and of settings, and times, as somebody types them: bash, zsh and fish."""

import json
import os
import shutil
import socket
import subprocess
import time

import pytest

from tests.support import forking
from tests.support.names import unique
from tests.support.processor_time import quickest
from tests.support.typed_shell import TypedShell

SHELLS = [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"))
    for name in ("bash", "zsh", "fish")
]
TYPED = [shell for shell in SHELLS if shell.values[0] != "fish"]


class Machine:
    """A broker with a topic and a group, a profile that names it, and `horolog` on the path."""

    def __init__(self, folder, address, topic, group):
        self.topic = topic
        self.group = group
        self.address = address
        self.folder = folder
        (folder / "config/horolog").mkdir(parents=True)
        (folder / "config/horolog/config.toml").write_text(
            f'[profiles.prod]\nbootstrap = "{address}"\n[profiles.test]\n'
        )
        self.environ = {
            "PATH": f"{forking.forker().command.parent}:{os.environ['PATH']}",
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_DATA_HOME": str(folder / "data"),
            "HOME": str(folder),
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
            "HOROLOG_COMPLETION_TIMEOUT": "20s",
            "PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX", ""),
        }
        for shell in ("bash", "zsh", "fish"):
            script = self.horolog("completion", shell)
            (folder / f"completion.{shell}").write_text(script)

    def horolog(self, *words):
        ended = subprocess.run(
            ["horolog", *words], env=self.environ, capture_output=True, text=True, timeout=60, check=True
        )
        return ended.stdout

    def offered(self, shell, line):
        """The names that a shell offers for the end of a line."""
        script = self.folder / f"completion.{shell}"
        if shell == "fish":
            words = ["fish", "--no-config", "-c", f"source {script}; complete -C {quoted(line)}"]
            return [each.partition("\t")[0] for each in self.said(words).splitlines()]
        if shell == "bash":
            # A first shell breaks the line into words as readline would; the second is asked by them.
            words = broken(line)
            given = " ".join(quoted(word) for word in words)
            text = f"source {script}; COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; COMP_LINE={quoted(line)}; COMP_POINT={len(line)}"
            text += '; _horolog; printf "%s\\n" "${COMPREPLY[@]}"'
            return self.said(["bash", "--norc", "-c", text]).splitlines()
        given = " ".join(quoted(word) for word in line.split(" "))
        text = (
            "compdef() { : }; compadd() { [[ $1 == -S ]] && shift 2; shift; (( $# )) && print -rl -- $@ }; _describe() { : }; _files() { : }"
            f"; source {script}; words=({given}); CURRENT={len(line.split(' '))}; PREFIX=${{words[-1]}}; _horolog"
        )
        return self.said(["zsh", "-f", "-c", text]).splitlines()

    def said(self, words):
        ended = subprocess.run(words, env=self.environ, capture_output=True, text=True, timeout=60, check=False)
        assert ended.stderr == ""
        return ended.stdout


def quoted(text):
    return "'" + text + "'"


def broken(line):
    """The words of a line as bash has them, which breaks them at = and : as well."""
    words = []
    for word in line.split(" "):
        part = ""
        for one in word:
            if one in ":=":
                words += [each for each in (part, one) if each]
                part = ""
            else:
                part += one
        if part or not word:
            words.append(part)
    return words


@pytest.fixture(scope="module")
def machine(session_broker, tmp_path_factory):
    made = Machine(tmp_path_factory.mktemp("machine"), session_broker.address, unique("orders"), unique("billing"))
    where = ("--bootstrap", session_broker.address, "--timeout", "30s")
    made.horolog("topics", "create", made.topic, *where)
    made.horolog("consume", made.topic, "--group", made.group, *where)
    return made


@pytest.mark.parametrize("shell", SHELLS)
def test_topics_and_groups_of_the_broker_that_is_named(machine, shell):
    at = f"--bootstrap {machine.address}"
    assert machine.topic in machine.offered(shell, f"horolog consume {at} ord")
    assert machine.topic in machine.offered(shell, f"horolog topics describe {at} ")
    assert machine.group in machine.offered(shell, f"horolog consume {machine.topic} {at} --group bil")
    assert machine.group in machine.offered(shell, f"horolog groups lag {at} ")
    assert machine.topic in machine.offered(shell, f"horolog configs set topic {at} ord")
    assert machine.topic in machine.offered(shell, "horolog consume -P prod ord")


@pytest.mark.parametrize("shell", SHELLS)
def test_profiles_settings_and_times(machine, shell):
    assert {"prod", "test"} <= set(machine.offered(shell, "horolog consume -P "))
    assert machine.offered(shell, "horolog consume --profile pr") == ["prod"]
    assert "retention.ms=" in machine.offered(shell, "horolog topics alter x --config ret")
    assert "retention.ms" in machine.offered(shell, "horolog topics alter x --delete-config ret")
    values = machine.offered(shell, "horolog topics create x -c cleanup.policy=")
    assert values == (["compact", "delete"] if shell == "bash" else ["cleanup.policy=compact", "cleanup.policy=delete"])
    values = machine.offered(shell, "horolog topics create x -c cleanup.policy=compact,")
    assert values == (["compact,delete"] if shell == "bash" else ["cleanup.policy=compact,delete"])
    assert "consumer.session.timeout.ms=" in machine.offered(shell, "horolog configs set group g consumer.")
    assert "share.isolation.level" in machine.offered(shell, "horolog configs unset group g share.")
    values = machine.offered(shell, "horolog configs set group g share.isolation.level=read_c")
    assert values == (["read_committed"] if shell == "bash" else ["share.isolation.level=read_committed"])
    values = machine.offered(shell, "horolog configs set group g share.auto.offset.reset=by")
    assert values == (["by_duration:PT1H"] if shell == "bash" else ["share.auto.offset.reset=by_duration:PT1H"])
    assert {"now-1h", "today"} <= set(machine.offered(shell, "horolog consume x --since "))
    assert machine.offered(shell, "horolog consume x --until yes")[0].startswith("yesterday")


@pytest.mark.parametrize("shell", SHELLS)
def test_words_that_stay_the_same_are_still_there(machine, shell):
    if shell != "zsh":  # its own functions, which are not there, list them
        assert "consume" in machine.offered(shell, "horolog con")
        assert "--since" in machine.offered(shell, "horolog consume --si")
        assert machine.offered(shell, "horolog consume x -o js") == ["json"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_broker_that_does_not_answer_is_not_waited_for_and_not_told_of(machine, shell):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        patient = machine.environ.pop("HOROLOG_COMPLETION_TIMEOUT")

        def took():
            began = time.monotonic()
            assert machine.offered(shell, f"horolog groups lag -b 127.0.0.1:{silent.getsockname()[1]} ") in ([], [""])
            return time.monotonic() - began

        try:
            assert quickest(took, below=10) < 10
        finally:
            machine.environ["HOROLOG_COMPLETION_TIMEOUT"] = patient
    assert machine.offered(shell, "horolog groups lag -P gone ") in ([], [""])


@pytest.mark.parametrize("shell", TYPED)
def test_what_is_typed_is_completed(machine, shell):
    """The whole way: a terminal, the keys, the shell's own machinery."""
    words = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}[shell]
    prepare = "" if shell == "bash" else "autoload -U compinit; compinit -u -D; "
    with TypedShell(words, machine.environ | {"PS1": "$ ", "TERM": "xterm"}) as typed:
        typed.type(f"{prepare}source {machine.folder}/completion.{shell}; echo rea''dy\n")
        typed.until("ready\n")
        typed.type(f"horolog consume -P prod {machine.topic[:-3]}")
        typed.until_after("\t", machine.topic[-3:])
        typed.type("--since yesterd")
        typed.until_after("\t", "yesterday")


@pytest.mark.parametrize(
    "words", [(), ("consume",), ("gone", ""), ("consume", "-b", "x:y", ""), ("topics", "create", "")]
)
def test_what_cannot_be_known_is_silence(horolog, words, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ended = horolog("_complete", *words)
    assert (ended.out, ended.err) == ("", "")


def test_a_profile_without_answers_says_nothing(horolog, monkeypatch, tmp_path):
    (tmp_path / "horolog").mkdir()
    (tmp_path / "horolog/config.toml").write_text("no toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ended = horolog("_complete", "consume", "-P", "")
    assert (ended.out, ended.err) == ("", "")
    assert json.dumps(ended.code)
