"""The keys that are kept of a SCRAM password: the vectors of RFC 7677, and nothing that is the password."""

import base64

import pytest

from horolog.broker.security.sasl import scram_keys
from horolog.broker.security.sasl.scram_keys import SCRAM_SHA_256, SCRAM_SHA_512, ScramKeys

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def test_the_keys_are_those_of_the_rfc():
    keys = scram_keys.of_password(SCRAM_SHA_256, "pencil", 4096, SALT)
    first, server_first = (
        "n=user,r=rOprNGfwEbeRWgbNEkqO",
        ("r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"),
    )
    final = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    signed = f"{first},{server_first},{final}".encode()
    assert (
        base64.b64encode(SCRAM_SHA_256.hmac(keys.server_key, signed)) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = SCRAM_SHA_256.hmac(keys.stored_key, signed)
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    assert SCRAM_SHA_256.digest(client_key) == keys.stored_key


@pytest.mark.parametrize("kind", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_keys_are_kept_as_text_and_read_again(kind):
    keys = scram_keys.of_password(kind, "pencil", 5000)
    assert len(keys.stored_key) == len(keys.server_key) == kind.key_bytes
    assert ScramKeys.of_content(keys.content()) == keys
    assert keys != scram_keys.of_password(kind, "pencil", 5000)  # another salt
    assert "pencil" not in str(keys.content())
    assert repr(keys) == "ScramKeys(iterations=5000)"


@pytest.mark.parametrize("key", ["salt", "stored_key", "server_key", "iterations"])
@pytest.mark.parametrize("value", [None, "*", 7.5j])
def test_damaged_content_is_told(key, value):
    content = scram_keys.of_password(SCRAM_SHA_256, "pencil").content()
    with pytest.raises((TypeError, ValueError)):
        ScramKeys.of_content({**content, key: value})
    del content[key]
    with pytest.raises(KeyError):
        ScramKeys.of_content(content)


def test_a_name_without_user_has_one_salt_by_secret_mechanism_and_name():
    def salt(*of):
        keys = scram_keys.of_nobody(*of)
        assert len(keys.salt) == scram_keys.SALT_BYTES
        assert keys.iterations == 4096
        return keys.salt

    salts = [
        salt(SCRAM_SHA_256, "ann", b"1"),
        salt(SCRAM_SHA_256, "ann", b"2"),
        salt(SCRAM_SHA_256, "bob", b"1"),
        salt(SCRAM_SHA_512, "ann", b"1"),
    ]
    assert len(set(salts)) == 4
    assert salts[0] == salt(SCRAM_SHA_256, "ann", b"1")
