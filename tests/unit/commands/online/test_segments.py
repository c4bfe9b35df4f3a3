"""The HTTP port and its token are those of the command line, or of the environment."""

import argparse
from types import SimpleNamespace

import pytest

from horolog.client.security.settings import Security, Store, Tls
from horolog.commands.errors import UsageError
from horolog.commands.online.segments import LONGEST_MS, TOKEN_VARIABLE, access_of, add_http, trusted_file


def access(*words, timeout=60_000, **environ):
    parser = argparse.ArgumentParser()
    add_http(parser)
    arguments = parser.parse_args(words)
    arguments.timeout, arguments.security = timeout, None
    return access_of(arguments, SimpleNamespace(environ=environ))


def test_where_and_how(tmp_path):
    assert (access().url, access().token, access().timeout_ms) == (None, None, LONGEST_MS)
    found = access("--http", "http://broker:9464", timeout=0, **{TOKEN_VARIABLE: "from-the-environment"})
    assert (found.url, found.token, found.timeout_ms) == ("http://broker:9464", "from-the-environment", 1)
    file = tmp_path / "token"
    file.write_text("from-the-file\n")
    assert access("--http-token-file", str(file), **{TOKEN_VARIABLE: "other"}).token == "from-the-file"


def test_the_http_port_is_trusted_as_the_listeners_are():
    assert trusted_file(None) is trusted_file(Security()) is trusted_file(Security(Tls())) is None
    assert trusted_file(Security(Tls(Store("ssl.truststore.location", "/ca.pem", "PEM")))) == "/ca.pem"
    assert trusted_file(Security(Tls(Store("ssl.truststore.location", "/ca.p12", "PKCS12")))) is None


@pytest.mark.parametrize("words", [("--http", "broker:9464"), ("--http-token-file", "/no/such/file")])
def test_what_makes_no_sense_is_refused(words):
    with pytest.raises(UsageError, match="--http"):
        access(*words)


def test_a_token_that_is_none():
    with pytest.raises(UsageError, match="printable"):
        access(**{TOKEN_VARIABLE: "a b"})
