"""Keys of tokens: read from files and URLs, and again from time to time; a look that fails leaves those that are known."""

from __future__ import annotations

import json

import pytest

from horolog.broker.security.sasl.jwks import MOST_BYTES, Jwks, JwksFault, fetch, parse
from tests.support.sasl import Hourglass
from tests.support.tokens import Signer

RSA, EC = Signer("RSA", "r"), Signer("EC", "e")


def text(*signers, **more):
    return json.dumps({"keys": [{**one.jwk, **more} for one in signers]}).encode()


def test_keys_are_found_by_their_ids():
    keys = parse(text(RSA, EC))
    assert set(keys) == {"r", "e"}
    assert keys["r"].algorithm is None
    assert parse(text(RSA, alg="RS384"))["r"].algorithm == "RS384"


def test_keys_that_check_no_signature_are_passed_over(caplog):
    secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "s"}
    broken = {**RSA.jwk, "n": "", "kid": "b"}
    data = json.dumps({"keys": [secret, broken, {**EC.jwk, "use": "enc"}, RSA.jwk]}).encode()
    assert set(parse(data)) == {"r"}
    assert "a key of a JWKS cannot be read" in caplog.text


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"keys": 7}', b'{"keys": [7]}', b'{"keys": []}', b"[" * 100_000])
def test_what_is_no_key_set_is_told(data):
    with pytest.raises(JwksFault):
        parse(data)


def test_files_are_read(tmp_path):
    path = tmp_path / "a key set"
    path.write_bytes(text(RSA))
    assert set(fetch(f"file://{tmp_path}/a%20key%20set")) == {"r"}
    with pytest.raises(JwksFault, match="cannot be read"):
        fetch(f"file://{tmp_path}/other")
    path.write_bytes(b" " * (MOST_BYTES + 1))
    with pytest.raises(JwksFault, match="more than"):
        fetch(f"file://{tmp_path}/a%20key%20set")


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/keys", "keys", "http://127.0.0.1:1/keys", "https://[/"])
def test_what_cannot_be_fetched_is_told(url):
    with pytest.raises(JwksFault):
        fetch(url)


class Worker:
    """Does what a thread would, when the test says so."""

    def __init__(self):
        self.jobs = []

    def in_thread(self, work, done):
        self.jobs.append((work, done))

    def run(self, outcome=None):
        (_, done), *self.jobs = self.jobs
        done(outcome)


def started(keys=None):
    glass, worker = Hourglass(), Worker()
    one = Jwks("file:///keys", 60_000, 100, 300)
    one.start(glass.later, worker.in_thread)
    if keys is not None:
        worker.run(keys)
    return one, glass, worker


def test_they_are_fetched_at_the_start_and_again():
    one, glass, worker = started(parse(text(RSA)))
    assert one.find("r") is not None
    assert glass.run() == [60.0]
    worker.run(parse(text(EC)))
    assert one.find("r") is None
    assert one.find("e") is not None
    assert repr(one) == "<Jwks of file:///keys, 1 keys>"


def test_a_look_that_fails_is_made_again_soon_and_those_known_count_on(caplog):
    one, glass, worker = started(parse(text(RSA)))
    waits = glass.run()
    for _ in range(4):
        worker.run(JwksFault("no answer"))
        waits += glass.run()
    worker.run(parse(text(RSA)))
    assert waits == [60.0, 0.1, 0.2, 0.3, 0.3]
    assert glass.run() == [60.0]
    assert one.find("r") is not None
    assert "no answer" in caplog.text


def test_a_key_that_is_not_here_has_them_fetched_but_not_for_everybody_who_names_one():
    one, glass, worker = started(parse(text(RSA)))
    assert one.find("new") is None
    assert len(worker.jobs) == 1
    assert one.find("newer") is None
    worker.run(parse(text(EC)))
    assert one.find("newest") is None
    assert worker.jobs == []
    assert sorted(glass.run()) == [10.0, 60.0]
    assert len(worker.jobs) == 1
    worker.run(parse(text(EC)))
    assert one.find("other") is None
    assert len(worker.jobs) == 1


def test_a_token_without_a_key_id_goes_by_the_only_key():
    one, _, worker = started(parse(text(RSA)))
    assert one.find(None) is not None
    one.take(parse(text(RSA, EC)))
    assert one.find(None) is None
    assert worker.jobs


def test_nothing_is_fetched_once_it_has_stopped():
    one, glass, worker = started(parse(text(RSA)))
    one.stop()
    assert glass.waiting == []
    assert one.find("new") is None
    assert worker.jobs == []
    unstarted = Jwks("file:///keys", 1, 1, 1)
    unstarted.stop()
    assert unstarted.find("x") is None


def test_an_outcome_that_comes_after_the_stop_waits_for_nothing():
    one, glass, worker = started()
    one.stop()
    worker.run(parse(text(RSA)))
    assert glass.waiting == []
