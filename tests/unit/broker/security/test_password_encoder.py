"""Secrets are encrypted in their place by a secret of the owner, which can be exchanged, and nothing else reads them."""

import pytest

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.on_record.stored_rules import ACL, ENCRYPTED, USER, StoredRule
from horolog.broker.security import password_encoder
from horolog.broker.security.password_encoder import CREDENTIALS, NotDecoded, PasswordEncoder, secrets_in

PLACE = "the setting ssl.key.password"
ALICE = StoredRule(USER, "SCRAM-SHA-256/alice", {"salt": "s", "stored_key": "k", "iterations": 4096})
RULE = StoredRule(ACL, "x", {"encrypted": "no"})


@pytest.fixture(scope="module")
def encoder():
    return PasswordEncoder("a secret of the owner")


def test_what_is_encoded_shows_nothing_and_is_decoded_again(encoder):
    text = encoder.encode("hush", PLACE)
    assert text.startswith(ENCRYPTED)
    assert "hush" not in text
    assert encoder.decode(text, PLACE) == PasswordEncoder("a secret of the owner").decode(text, PLACE) == "hush"
    assert encoder.encode("hush", PLACE) == encoder.encode(text, PLACE) == text
    assert "secret of" not in repr(encoder) + repr(encoder._keys)


def test_it_counts_in_its_place_and_as_it_is_alone(encoder):
    text = encoder.encode("hush", PLACE)
    changed = text[:-5] + ("A" if text[-5] != "A" else "B") + text[-4:]
    for wrong, place in ((text, "elsewhere"), (changed, PLACE)):
        with pytest.raises(NotDecoded, match=r"not by this password\.encoder\.secret"):
            encoder.decode(wrong, place)
    with pytest.raises(NotDecoded, match="by a later release"):
        encoder.decode(text.replace("$1$", "$2$"), PLACE)


@pytest.mark.parametrize("text", ["plain", "", "$encrypted$", "$encrypted$x", "$encrypted$1$a$b", "$encrypted$1$$"])
def test_what_only_looks_so_is_a_password_like_others(encoder, text):
    encoded = encoder.encode(text, PLACE)
    assert encoder.decode(encoded, PLACE) == text


def test_without_a_secret_all_stays_as_it_is_and_what_is_encrypted_is_refused(encoder):
    plain = PasswordEncoder()
    assert (plain.encode("x", PLACE), plain.decode("x", PLACE), plain.encoded_rule(ALICE)) == ("x", "x", ALICE)
    with pytest.raises(NotDecoded, match=r"give password\.encoder\.secret, or the systemd credential"):
        plain.decode(encoder.encode("x", PLACE), PLACE)


def test_a_secret_is_exchanged_and_given_up(encoder):
    text = encoder.encode("hush", PLACE)
    newer = PasswordEncoder("another", "a secret of the owner")
    renewed = newer.encode(text, PLACE)
    assert (renewed != text, newer.decode(renewed, PLACE), newer.encrypts) == (True, "hush", True)
    assert PasswordEncoder("another").decode(renewed, PLACE) == "hush"
    with pytest.raises(NotDecoded, match=r"neither by password\.encoder\.secret nor password\.encoder\.old\.secret"):
        PasswordEncoder("a", "b").decode(text, PLACE)
    assert PasswordEncoder(None, "another").encode(renewed, PLACE) == "hush"


def test_rules_of_users_and_settings_that_are_passwords(encoder):
    rules = {rule.id: rule for rule in (ALICE, RULE)}
    encoded = encoder.encoded_rules(rules)
    assert encoded[RULE.id] is RULE
    assert list(encoded[ALICE.id].content) == ["encrypted"]
    assert encoder.decoded_rules(encoded) == rules
    assert encoder.encoded_rules(encoded) == encoded
    assert PasswordEncoder(None, "a secret of the owner").encoded_rules(encoded) == rules
    configs = {"listener.name.x.ssl.keystore.key": "PEM", "log.retention.ms": "7"}
    kept = encoder.encoded_configs(configs)
    assert (kept["log.retention.ms"], "PEM" in str(kept), encoder.decoded_configs(kept)) == ("7", False, configs)
    assert secrets_in(rules, {"1": configs}) == 2
    assert secrets_in(encoded, {"1": kept}) == 0


def test_all_of_a_cluster_have_one_salt(encoder):
    encoded = encoder.encoded_rules({ALICE.id: ALICE})
    bob = StoredRule(USER, "SCRAM-SHA-256/bob", {"salt": "s"})
    other = PasswordEncoder("a secret of the owner")
    (added,) = other.encoded_beside([bob], encoded)
    assert added.content["encrypted"].split("$")[3] == encoded[ALICE.id].content["encrypted"].split("$")[3]
    assert PasswordEncoder().encoded_beside([bob], {}) == (bob,)


def settings(**given):
    return from_layers(Layers(static={key.replace("_", "."): value for key, value in given.items()}))


def test_the_secret_is_a_setting_or_a_credential_of_systemd(tmp_path):
    assert not PasswordEncoder.of(settings(), {}).encrypts
    assert not PasswordEncoder.of(settings(), {CREDENTIALS: str(tmp_path)}).encrypts
    (tmp_path / "password.encoder.secret").write_text("from systemd\n")
    (tmp_path / "password.encoder.old.secret").write_text("older\n")
    found = PasswordEncoder.of(settings(), {CREDENTIALS: str(tmp_path)})
    assert PasswordEncoder("from systemd").decode(found.encode("x", PLACE), PLACE) == "x"
    assert found.decode(PasswordEncoder("older").encode("x", PLACE), PLACE) == "x"
    given = PasswordEncoder.of(settings(password_encoder_secret="mine"), {CREDENTIALS: str(tmp_path)})
    assert PasswordEncoder("mine").decode(given.encode("x", PLACE), PLACE) == "x"
    (tmp_path / "password.encoder.secret").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="cannot be read"):
        PasswordEncoder.of(settings(), {CREDENTIALS: str(tmp_path)})


def test_without_the_package_a_secret_is_refused(monkeypatch):
    monkeypatch.setattr(password_encoder, "find_spec", lambda _: None)
    with pytest.raises(SettingsError, match=r"horolog\[tls\]"):
        PasswordEncoder("x")
    assert not PasswordEncoder().encrypts
