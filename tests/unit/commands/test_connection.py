"""Where a command connects to and with which credentials: the order of the sources, refusals, and that credentials stay with their brokers."""

import io
import json
import stat
from argparse import Namespace

import pytest

from horolog.client.cli.main import main
from horolog.commands.connection import config_file, profiles, settle
from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError, UsageError

HUSH = "hush-hush"
FILE = f"""\
bootstrap.servers=file:1
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.username=from-file
sasl.password={HUSH}
"""
PROFILES = f"""\
[profiles.default]
bootstrap = "usual:1"
security.protocol = "SASL_PLAINTEXT"
sasl = {{ mechanism = "PLAIN", username = "usual", password = "{HUSH}" }}

[profiles.test]
bootstrap = "test:1,test:2"

[profiles.tls]
bootstrap = "tls:1"
"security.protocol" = "SSL"
"enable.ssl.certificate.verification" = false

[profiles.broken]
"security.protocol" = "NONE"
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "horolog").mkdir()
    return tmp_path


def write(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def file(home):
    return write(home / "client.properties", FILE)


@pytest.fixture
def known(home):
    return write(home / "horolog" / "config.toml", PROFILES)


def settled(home, bootstrap=None, command_config=None, profile=None, **environ):
    """Bootstrap, user and what was said."""
    said = io.StringIO()
    console = Console(io.StringIO(), said, environ={"XDG_CONFIG_HOME": str(home), **environ})
    arguments = Namespace(bootstrap=bootstrap, command_config=command_config, profile=profile)
    settle(arguments, console)
    security = arguments.security
    return arguments.bootstrap, security and security.sasl and security.sasl.username, said.getvalue()


def test_nothing_is_said(home):
    assert settled(home) == ("localhost:9092", None, "")
    assert settled(home, HOROLOG_BOOTSTRAP="b:1") == ("b:1", None, "")
    assert settled(home, "c:2", HOROLOG_BOOTSTRAP="b:1") == ("c:2", None, "")


def test_a_file_wins_over_the_environment_and_an_address_over_that_of_the_file(home, file, known):
    assert settled(home, None, file)[:2] == ("file:1", "from-file")
    assert settled(home, "c:2", file)[:2] == ("c:2", "from-file")
    assert settled(home, HOROLOG_COMMAND_CONFIG=str(file), HOROLOG_BOOTSTRAP="b:1")[:2] == ("file:1", "from-file")
    assert settled(home, None, None, "test", HOROLOG_COMMAND_CONFIG=str(file))[:2] == ("test:1,test:2", None)


def test_profiles(home, known):
    assert settled(home, None, None, "test", HOROLOG_BOOTSTRAP="b:1")[0] == "test:1,test:2"
    assert settled(home, HOROLOG_PROFILE="test")[0] == "test:1,test:2"
    assert settled(home, "c:2", None, "default")[:2] == ("c:2", "usual")


def test_the_credentials_of_the_default_profile_go_to_its_own_brokers_only(home, known):
    assert settled(home)[:2] == ("usual:1", "usual")
    assert settled(home, "elsewhere:1")[:2] == ("elsewhere:1", None)
    assert settled(home, HOROLOG_BOOTSTRAP="elsewhere:1")[:2] == ("elsewhere:1", None)


def test_a_profile_that_is_not_there(home, known):
    with pytest.raises(NotFoundError, match="default, test, tls, broken"):
        settled(home, profile="nobody")


def test_one_source_is_enough(home, file):
    with pytest.raises(UsageError, match="both given"):
        settled(home, None, file, "test")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ssl.trustore.location=x\n", "do you mean ssl.truststore.location"),
        ("security.protocol=SASL_SSL\n", "sasl.mechanism is missing"),
        ("a=\\u12\n", "hexadecimal"),
    ],
)
def test_a_file_that_makes_no_sense_is_named(home, text, said):
    file = write(home / "bad.properties", text)
    with pytest.raises(UsageError, match=said) as caught:
        settled(home, None, file)
    assert "bad.properties" in str(caught.value)


@pytest.mark.parametrize("text", ["[profiles", "profiles = 5", "[profiles]\na = 5"])
def test_a_file_of_profiles_that_cannot_be_read_is_named(home, text):
    write(home / "horolog" / "config.toml", text)
    with pytest.raises(UsageError, match=r"config\.toml"):
        settled(home, profile="a")


@pytest.mark.parametrize(("mode", "warns"), [(0o600, False), (0o640, True), (0o604, True), (0o400, False)])
def test_a_secret_that_others_can_read_is_told(home, file, known, mode, warns):
    file.chmod(mode)
    known.chmod(mode)
    assert ("others on this machine can read it" in settled(home, None, file)[2]) is warns
    assert ("others on this machine can read it" in settled(home)[2]) is warns
    assert settled(home, profile="test")[2] == ""  # it holds none
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_the_home_of_the_profiles():
    assert str(config_file({"HOME": "/anywhere/a"})) == "/anywhere/a/.config/horolog/config.toml"
    assert str(config_file({"HOME": "/anywhere/a", "XDG_CONFIG_HOME": "/x"})) == "/x/horolog/config.toml"
    assert profiles({"HOME": "/nowhere/at/all"}) == {}


def run(home, *words, environ=()):
    out, err = io.StringIO(), io.StringIO()
    code = main(words, Console(out, err, environ={"XDG_CONFIG_HOME": str(home), **dict(environ)}))
    return int(code), out.getvalue(), err.getvalue()


def test_profiles_are_listed_without_secrets(home, known):
    code, out, _ = run(home, "profiles")
    assert code == 0
    assert "default *" in out
    assert "SASL_PLAINTEXT" in out
    assert "usual:1" in out
    code, text, _ = run(home, "profiles", "-o", "json", environ={"HOROLOG_PROFILE": "tls"})
    rows = {row["name"]: row for row in json.loads(text)}
    assert rows["default"] == {
        "name": "default",
        "chosen": False,
        "bootstrap": "usual:1",
        "protocol": "SASL_PLAINTEXT",
        "mechanism": "PLAIN",
        "user": "usual",
    }
    assert rows["tls"]["chosen"]
    assert rows["tls"]["protocol"] == "SSL"
    assert "NONE" in rows["broken"]["fault"]
    assert HUSH not in out + text


def test_no_profiles(home):
    assert run(home, "profiles")[1] == ""
    assert "config.toml" in run(home, "profiles")[2]


def test_a_command_takes_them(home, file):
    code, out, err = run(home, "health", "--command-config", str(file), "-b", "127.0.0.1:1", "--timeout", "300ms")
    assert (code, out) == (5, "")
    code, _, err = run(home, "topics", "list", "--profile", "none")
    assert code == 4
    assert "no profile 'none'" in err
    code, _, err = run(home, "topics", "list", "--command-config", str(home / "nothing"))
    assert code == 4
