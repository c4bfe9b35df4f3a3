"""`horolog users` as a user types it: at a broker, and of a folder that no broker runs on."""

import io
import json

import pytest

from horolog.client.cli import users
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.testing import broker_in_thread

NAME = "SCRAM-SHA-512"


@pytest.fixture(scope="module")
def address():
    with broker_in_thread() as broker:
        yield broker.bootstrap


@pytest.fixture(params=["broker", "folder"])
def there(request, address, tmp_path):
    return ("-b", address) if request.param == "broker" else ("--data", tmp_path / "data")


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("päss w\nrest\n")
    return path


def listed(ended):
    return [(one["user"], one["mechanism"], one["iterations"]) for one in json.loads(ended.out)]


def test_users_come_and_go(horolog, there, secret):
    added = horolog("users", "add", "ann", "--password-file", secret, *there)
    assert (added.code, added.out) == (0, f"added ann ({NAME})\n")
    more = ("--mechanism", "SCRAM-SHA-256", "--iterations", "8192", "--password-file", secret)
    assert horolog("users", "add", "ann", *more, *there, "-o", "json").json == [
        {"user": "ann", "mechanism": "SCRAM-SHA-256", "done": "added"}
    ]
    assert listed(horolog("users", "list", *there, "-o", "json")) == [
        ("ann", "SCRAM-SHA-256", 8192),
        ("ann", NAME, 4096),
    ]
    assert [line.split() for line in horolog("users", "list", *there).out.splitlines()] == [
        ["USER", "MECHANISM", "ITERATIONS"],
        ["ann", "SCRAM-SHA-256", "8192"],
        ["ann", NAME, "4096"],
    ]
    assert horolog("users", "remove", "ann", "--mechanism", NAME, *there).out == f"removed ann ({NAME})\n"
    gone = horolog("users", "remove", "ann", "--mechanism", NAME, *there)
    assert (gone.code, f"there is no user 'ann' with a password for {NAME}" in gone.err) == (4, True)
    assert horolog("users", "remove", "ann", *there).code == 0
    assert listed(horolog("users", "list", *there, "-o", "json")) == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("add", "ann", "--data", "{data}"), 2, "give --password-file FILE"),
        (("add", "ann", "--password-file", "{empty}", "--data", "{data}"), 2, "the password is empty"),
        (("add", "ann", "--password-file", "{long}", "--data", "{data}"), 2, "longer than 1024 bytes"),
        (("add", "ann", "--password-file", "{none}", "--data", "{data}"), 1, "cannot be read"),
        (("add", "", "--password-file", "{full}", "--data", "{data}"), 2, "the name of the user is empty"),
        (("add", "ann", "--iterations", "4095", "--password-file", "{full}", "--data", "{data}"), 2, "4096 to 16384"),
        (("add", "ann", "--mechanism", "PLAIN", "--data", "{data}"), 2, "expected"),
        (("add", "ann", "--password", "x", "--data", "{data}"), 2, "there is no option --password"),
        (("list", "--data", "{none}"), 4, "is not a folder"),
        (("remove", "ann", "--data", "{kafka}"), 4, "there is no user 'ann'"),
        (("add", "ann", "--password-file", "{full}", "--data", "{kafka}"), 1, "horolog adopt DIR"),
    ],
)
def test_what_cannot_be_done_is_told(horolog, tmp_path, monkeypatch, words, code, said):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    places = {name: tmp_path / name for name in ("data", "empty", "none", "full", "kafka", "long")}
    places["empty"].write_text("")
    places["full"].write_text("password")
    places["long"].write_text("x" * 1025)
    (places["kafka"] / "t-0").mkdir(parents=True)
    (places["kafka"] / "t-0" / f"{0:020}.log").write_bytes(b"")
    ended = horolog("users", *(word.format(**places) for word in words))
    assert (ended.code, said in ended.err) == (code, True), ended
    assert not (places["data"] / "horolog-cluster").exists()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("typed", "password"), [(["a", "a"], "a"), (["a", "b"], None)])
def test_a_password_is_asked_for_twice(monkeypatch, typed, password):
    answers = iter(typed)
    monkeypatch.setattr("getpass.getpass", lambda prompt, stream: stream.write(prompt) and next(answers))
    console = Console(io.StringIO(), io.StringIO(), Terminal(), {})
    if password is None:
        with pytest.raises(UsageError, match="the two passwords differ"):
            users._asked("ann", console)
    else:
        assert users._asked("ann", console) == password
    assert console.err.getvalue() == "password of ann: again: "
