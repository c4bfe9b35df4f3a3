"""Places by URL: what they are called, and what opens them."""

import hashlib
import pickle
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from horolog.stores.faults import StoreError
from horolog.stores.place import StorePlace
from tests.support.authority import Authority
from tests.support.hostile_store import ENVIRONMENT


def place(url, endpoint="", environment=ENVIRONMENT):
    return StorePlace.from_environment(url, endpoint, environment)


def test_a_url_is_a_bucket_and_a_folder():
    found = place("s3a://b/x/y/")
    assert (found.scheme, found.bucket, found.folder, found.where) == ("s3a", "b", "x/y", "the store")
    assert (found.canonical(), found.key("k"), (found / "z").key("k")) == ("s3://b/x/y", "x/y/k", "x/y/z/k")
    assert (place("gcs://b").canonical(), (place("gs://b") / "z").url) == ("gs://b/", "gs://b/z")
    assert place("az://b/x").root == "az://b"
    assert pickle.loads(pickle.dumps(found)) == found
    assert "hidden" not in f"{found!r} {found}"


def test_a_folder_of_this_machine_is_its_own_bucket(tmp_path):
    found = place(f"file://{tmp_path}/a%20b/")
    assert (found.bucket, found.folder, found.key("k")) == (f"{tmp_path}/a b", "", "k")


@pytest.mark.parametrize(
    "url", ["b", "/b", "s3:///x", "s3://b/x?y=1", "s3://b#x", "http://b/x", "file://host/x", "file:///", "file:///x?y"]
)
def test_what_names_no_store(url):
    with pytest.raises(StoreError, match=r"expected s3://BUCKET/FOLDER, gs://, az:// or file:///FOLDER"):
        place(url)


def test_settings_come_from_the_environment():
    found = dict(place("s3://b", "http://h:1").settings)
    assert found == {
        "access_key_id": "AKIDTEST", "secret_access_key": "hidden", "endpoint": "http://h:1", "virtual_hosted_style_request": "false",
    }  # fmt: skip
    assert place("s3://b", "http://h:1").where == "http://h:1"
    assert (dict(place("gs://b").settings), dict(place("gs://b", "http://h").settings)) == (
        {},
        {"endpoint": "http://h"},
    )


def test_clients(tmp_path):
    pytest.importorskip("obstore")
    assert [type(place(url).open()).__name__ for url in ("s3://b", f"file://{tmp_path}/new")] == [
        "S3Store",
        "LocalStore",
    ]
    assert (tmp_path / "new").is_dir()
    (tmp_path / "taken").write_text("")
    with pytest.raises(StoreError, match="taken"):
        place(f"file://{tmp_path}/taken/x").open()


def test_errors_of_a_client_are_sentences():
    pytest.importorskip("obstore")
    found = place("s3://b/x")
    with pytest.raises(FileNotFoundError, match="s3://b/x"), found.told():
        raise FileNotFoundError("gone <Code>NoSuchKey</Code> secret")
    with pytest.raises(StoreError, match=r"^s3://b/x: there is no bucket b$"), found.told():
        raise FileNotFoundError("<Code>NoSuchBucket</Code>")
    with pytest.raises(StoreError, match=r"^s3://b/x: no room$"), found.told():
        raise OSError("no room\nsecret")
    with found.told():
        pass


@contextmanager
def puts(certificate):
    """A server that takes every PUT: its endpoint, and the hash of the body that each request claims to have."""
    claims = []

    class Taking(BaseHTTPRequestHandler):
        def do_PUT(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            claims.append(self.headers["x-amz-content-sha256"])
            self.send_response(200)
            self.send_header("ETag", '"e"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate.both_file)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"{'http' if certificate is None else 'https'}://127.0.0.1:{server.server_port}", claims
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("is_encrypted", "variable", "is_signed"),
    [(False, None, True), (True, None, False), (True, "false", True), (False, "true", False)],
)
def test_a_body_is_part_of_the_signature_where_tls_does_not_protect_it(
    tmp_path, monkeypatch, is_encrypted, variable, is_signed
):
    """The server of TLS is a real one; AWS_UNSIGNED_PAYLOAD overrides what the endpoint implies."""
    obstore = pytest.importorskip("obstore")
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.trusted))
    environment = ENVIRONMENT if variable is None else ENVIRONMENT | {"AWS_UNSIGNED_PAYLOAD": variable}
    with puts(authority.issue("127.0.0.1") if is_encrypted else None) as (endpoint, claims):
        client = place("s3://b", endpoint, environment).client(0, 10)
        obstore.put(client, "k", b"body", use_multipart=False)
    assert claims == [hashlib.sha256(b"body").hexdigest() if is_signed else "UNSIGNED-PAYLOAD"]
