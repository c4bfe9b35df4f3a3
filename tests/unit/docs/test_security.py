"""The security page says what the program does: its examples make doors, and the settings that it names are there."""

import re
import ssl
import subprocess

import pytest

from horolog.base.acl_types import Operation, ResourceType
from horolog.base.clock import ManualClock
from horolog.base.properties_file import parse
from horolog.broker.base.metrics import Metrics
from horolog.broker.base.principal import Principal
from horolog.broker.config.settings import SPECS, load
from horolog.broker.security.authorizer import authorizer_of
from horolog.broker.security.sasl import doors
from horolog.broker.security.sasl.doors import SaslDoors, Surroundings
from horolog.broker.security.tls_listeners import TlsListeners
from horolog.client.decoding import RegistryAccess
from horolog.client.security.options import NAMES
from horolog.commands.connection import profiles, security_of
from tests.support.certificates import shake_hands
from tests.support.pages import blocks_of, prints, steps
from tests.support.sasl import Hourglass
from tests.support.style import PROJECT

PAGE = PROJECT / "docs" / "security.md"
SETTINGS = {block.first.partition("=")[2]: block.text for block in blocks_of(PAGE) if not block.language}
CLOSED = SETTINGS["LOCAL://127.0.0.1:9092,CLIENTS://0.0.0.0:9094"]
SEVERAL = SETTINGS["PLAIN,OAUTHBEARER"]
CERTIFIED = SETTINGS["LOCAL://127.0.0.1:9092,CERTIFIED://0.0.0.0:9093"]
CLIENT = SETTINGS["SSL"]
AUDIT = SETTINGS["/var/log/horolog/audit.jsonl"]
LISTS = next(text for text in SETTINGS.values() if text.startswith(("authorizer.", "super.users")))


@pytest.mark.parametrize(
    ("text", "mechanisms"), [(CLOSED, ["SCRAM-SHA-512"]), (CLOSED + SEVERAL, ["PLAIN", "OAUTHBEARER"])]
)
def test_its_examples_close_a_listener(text, mechanisms, monkeypatch):
    monkeypatch.setattr(doors, "find_spec", lambda _: True)
    settings, warnings = load(None, {}, parse(text.encode()))
    assert warnings == []
    made = SaslDoors(settings, Surroundings(ManualClock(), Metrics(), Hourglass().later, lambda *_: None))
    assert made.of("LOCAL") is None
    assert list(made.of("CLIENTS").mechanisms) == mechanisms


def test_its_example_of_access_lists_closes_a_broker():
    settings, warnings = load(None, {}, parse((CLOSED + LISTS).encode()))
    made = authorizer_of(settings)
    assert made is not None
    assert warnings == []
    for name, allowed in (("admin", True), ("alice", False)):
        rights = made.rights(Principal("User", name), "192.0.2.1")
        assert rights.may(Operation.READ, ResourceType.TOPIC, "t") == allowed


def test_its_example_of_an_audit_asks_for_both_forms():
    settings, warnings = load(None, {}, parse(AUDIT.encode()))
    assert (settings.horolog_audit_file, settings.horolog_audit_topic) == ("/var/log/horolog/audit.jsonl", "audit")
    assert warnings == []


def test_its_certificates_let_the_user_in(tmp_path, monkeypatch):
    """The commands make them, the settings serve with them, the client's file comes in with them."""
    monkeypatch.chdir(tmp_path)
    (made,) = [block.text for block in blocks_of(PAGE) if block.language == "sh"]
    (looked_at,) = [block.text for block in blocks_of(PAGE) if "openssl verify" in block.first]
    subprocess.run(["sh", "-ec", made], check=True)
    for step in steps(looked_at):
        ran = subprocess.run(["sh", "-c", step.command], capture_output=True, text=True, check=True)
        assert prints(step.expected, ran.stdout)
    settings, warnings = load(None, {}, parse(CERTIFIED.encode()))
    assert warnings == []
    tls = TlsListeners(settings).by_name["CERTIFIED"]
    told = parse(CLIENT.encode())
    assert told["security.protocol"] == "SSL"
    client = ssl.create_default_context(cafile=told["ssl.truststore.location"])
    client.load_cert_chain(told["ssl.keystore.location"])
    assert tls.principal_of(shake_hands(tls.context, client)[1]) == Principal("User", "alice")


def test_the_settings_that_it_names_are_there():
    keys = set(
        re.findall(
            r"`((?:sasl|ssl|connections?|horolog\.(?:ssl|http))\.[a-z.]+)[=`]", without_clients(PAGE.read_text("utf-8"))
        )
    )
    assert len(keys) > 5
    assert keys <= SPECS.keys()


def without_clients(text):
    return re.sub(r"## Clients\n.*?(?=\n## )", "", text, flags=re.DOTALL)


def test_the_names_for_clients_are_there():
    text = PAGE.read_text("utf-8")
    section = text[text.index("## Clients\n") :]
    named = set(re.findall(r"`((?:horolog|sasl|ssl|security|enable)\.[a-z.]+)[`=]", section[: section.index("\n## ")]))
    short = {".type", ".password", ".pem", ".secret"}
    assert all(each in section for each in short)
    told = NAMES - {each for each in NAMES if each.endswith(tuple(short)) or "sasl.login." in each}
    assert named <= NAMES
    assert told - named == {"sasl.oauthbearer.extensions", "sasl.oauthbearer.method"}


def test_the_profile_of_the_command_line_is_one(tmp_path):
    (tmp_path / "horolog").mkdir()
    texts = [block.text for block in blocks_of(PROJECT / "docs" / "cli.md") if block.language == "toml"]
    (tmp_path / "horolog" / "config.toml").write_text("\n".join(texts))
    given = profiles({"XDG_CONFIG_HOME": str(tmp_path)})
    assert security_of(given["production"]).protocol == "SASL_SSL"
    access = RegistryAccess.of(given["shop"].settings)
    assert access.name == "https://schemas.example:8081"
    assert access.authorization is not None
    assert access.ca_file == "/etc/horolog/ca.pem"
