"""Places in object stores: what their URLs and credentials mean, and what their errors say, beside a real S3 server."""

import pickle
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.pipeline.stores.file_systems import HADOOP_NAMES
from horolog.pipeline.stores.object_store import ObjectStore
from horolog.pipeline.stores.object_stores import Place, hadoop_options, is_url
from horolog.pipeline.stores.store import LocalStore, files_of
from horolog.pipeline.tables.commits import CommitLog
from horolog.pipeline.tables.lock import Lock, LockHeld
from horolog.pipeline.tables.table import TableError
from horolog.stores.faults import StoreError
from horolog.stores.place import CONNECT_SECONDS, RETRY_SECONDS
from tests.support.names import unique

KEYS = {"fs.s3a.access.key": "AK", "fs.s3a.secret.key": "hidden"}


def settings(url="s3a://b/f", options=None, environment=None):
    return dict(Place.of(url, options, environment or {"HOME": "/nonexistent"}).settings)


# -- URLs and credentials


@given(
    st.sampled_from(["s3", "s3a", "s3n"]),
    st.from_regex(r"[a-z0-9]{3,8}", fullmatch=True),
    st.sampled_from(["", "a", "a/b"]),
)
def test_a_url_is_a_bucket_and_a_folder(scheme, bucket, folder):
    place = Place.of(f"{scheme}://{bucket}/{folder}/", KEYS, {})
    assert (place.bucket, place.folder) == (bucket, folder)
    assert place.canonical() == f"s3://{bucket}/{folder}"
    assert place.key("x/y") == (f"{folder}/x/y" if folder else "x/y")
    assert (place / "z").key("y") == place.key("z/y")
    assert pickle.loads(pickle.dumps(place)) == place


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nowhere://name/a", "neither a store nor fsspec supports nowhere://"),
        ("s3a:///a", "expected s3a://BUCKET/FOLDER"),
        ("s3a://b/a?x=1", "expected s3a://BUCKET/FOLDER"),
    ],
)
def test_what_is_no_place_is_said(url, said):
    with pytest.raises(StoreError, match=said):
        Place.of(url)


def test_what_is_a_url():
    assert [is_url(each) for each in ("s3a://b", "/a/b", "a", "file:///a", "hdfs://a")] == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_hadoops_options_win_over_the_environment_and_that_over_a_profile(tmp_path):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(
        "[default]\naws_access_key_id=P\naws_secret_access_key=ps\n[other]\naws_access_key_id=O\naws_secret_access_key=os\n"
    )
    (tmp_path / ".aws/config").write_text("[default]\nregion=eu-1\n[profile other]\nendpoint_url=http://other\n")
    home = {"HOME": str(tmp_path)}
    around = home | {"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "es", "AWS_SESSION_TOKEN": "et"}
    found = settings(environment=home)
    assert (found["access_key_id"], found["secret_access_key"], found["region"]) == ("P", "ps", "eu-1")
    found = settings(environment=home | {"AWS_PROFILE": "other"})
    assert (found["access_key_id"], found["endpoint"]) == ("O", "http://other")
    found = settings(environment=around)
    assert (found["access_key_id"], found["session_token"]) == ("E", "et")
    found = settings(options=KEYS, environment=around)
    assert (found["access_key_id"], "session_token" in found) == ("AK", False), "keys of two sources are never mixed"
    found = settings(options=KEYS | {"fs.s3a.bucket.b.access.key": "B"}, environment=around)
    assert found["access_key_id"] == "B"
    with pytest.raises(StoreError, match="the profile none has no aws_access_key_id"):
        settings(environment=home | {"AWS_PROFILE": "none"})
    (tmp_path / ".aws/credentials").write_text("no section")
    with pytest.raises(StoreError, match="cannot be read as a file of profiles"):
        settings(environment=home)


@pytest.mark.parametrize(
    ("options", "endpoint", "virtual"),
    [
        ({"fs.s3a.endpoint": "h:1"}, "https://h:1", "false"),
        ({"fs.s3a.endpoint": "h:1", "fs.s3a.connection.ssl.enabled": "false"}, "http://h:1", "false"),
        ({"fs.s3a.endpoint": "http://h"}, "http://h", "false"),
        ({"fs.s3a.path.style.access": "false"}, None, "true"),
    ],
)
def test_endpoints(options, endpoint, virtual):
    found = settings(options=KEYS | options)
    assert (found.get("endpoint"), found["virtual_hosted_style_request"]) == (endpoint, virtual)


def test_other_stores_have_their_own_names_for_credentials():
    host = "account.dfs.core.windows.net"
    azure = f"abfss://box@{host}/f"
    assert settings(azure, {f"fs.azure.account.key.{host}": "c2VjcmV0"}) == {"account_key": "c2VjcmV0"}
    assert settings(
        azure,
        {
            f"fs.azure.account.oauth2.client.id.{host}": "i",
            f"fs.azure.account.oauth2.client.secret.{host}": "s",
            f"fs.azure.account.oauth2.client.endpoint.{host}": "https://login.microsoftonline.com/tenant/oauth2/token",
        },
    ) == {"client_id": "i", "client_secret": "s", "tenant_id": "tenant"}
    assert settings("gs://b/f", {"fs.gs.auth.service.account.json.keyfile": "/k.json"}) == {
        "service_account": "/k.json"
    }
    assert settings("gs://b/f") == {}
    assert "skip_signature" in settings(
        options={"fs.s3a.aws.credentials.provider": "a.AnonymousAWSCredentialsProvider"}
    )
    opened = Place.of(azure, {f"fs.azure.account.key.{host}": "c2VjcmV0"}).open()
    assert type(opened).__name__ == "AzureStore"


def test_a_place_can_be_said_in_options():
    around = {
        "AWS_ACCESS_KEY_ID": "E",
        "AWS_SECRET_ACCESS_KEY": "es",
        "AWS_ENDPOINT_URL": "http://h",
        "AWS_REGION": "r",
    }
    place = Place.of("s3a://b/f", {}, around)
    assert Place.of("s3a://b/f", place.as_options(), {}) == place


def test_delta_is_told_all_that_it_would_take_from_the_environment():
    def delta(options, environment):
        return Place.of("s3a://b/f", options, environment).as_delta_options(environment)

    found = delta(KEYS | {"fs.s3a.endpoint": "http://h:1"}, {"AWS_SESSION_TOKEN": "other"})
    assert (found["AWS_ACCESS_KEY_ID"], found["AWS_SECRET_ACCESS_KEY"]) == ("AK", "hidden")
    assert (found["AWS_ENDPOINT_URL"], found["AWS_ALLOW_HTTP"]) == ("http://h:1", "true")
    assert (found["AWS_SESSION_TOKEN"], found["AWS_REGION"]) == ("", "us-east-1"), "a token belongs to its key"
    own = {"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t", "AWS_REGION": "r"}
    found = delta({}, own | {"HOME": "/nonexistent"})
    assert {name: found[name] for name in own} == own
    assert "AWS_SESSION_TOKEN" not in delta(KEYS, {})
    keys = {"fs.azure.account.key.a.dfs.core.windows.net": "c2VjcmV0"}
    azure = Place.of("abfss://box@a.dfs.core.windows.net/f", keys, {})
    assert azure.as_delta_options({})["account_key"] == "c2VjcmV0"
    assert Place.of("gcs://b/f", {}, {}).canonical() == Place.of("gs://b/f", {}, {}).canonical()


def test_a_place_does_not_show_what_opens_it():
    place = Place.of("s3a://b/f", KEYS, {})
    assert "hidden" not in f"{place!r} {place} {ObjectStore(place)!r}"


# -- errors, in one sentence and in time


def unused_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def every_call(store):
    return [
        lambda: store.create("a", b""),
        lambda: store.replace("a", b""),
        lambda: store.read("a"),
        lambda: store.names("a"),
        lambda: store.files("a"),
        store.check,
    ]


@pytest.mark.parametrize(
    ("change", "bucket", "said"),
    [
        ({}, "nobody-made-it", "there is no bucket nobody-made-it"),
        ({"fs.s3a.secret.key": "wrong"}, "lake", r"access denied \(SignatureDoesNotMatch\)"),
        ({"fs.s3a.access.key": "wrong"}, "lake", r"access denied \("),
        ({"fs.s3a.endpoint": "http://127.0.0.1:{port}"}, "lake", r"http://127.0.0.1:\d+ cannot be reached"),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence_and_soon(s3, change, bucket, said):
    change = {name: value.format(port=unused_port()) for name, value in change.items()}
    store = ObjectStore(Place.of(f"s3a://{bucket}/f", s3.options | change, {}))
    for call in every_call(store):
        began = time.monotonic()
        with pytest.raises(StoreError, match=f"^s3a://{bucket}/f: {said}") as caught:
            call()
        assert time.monotonic() - began < 2 * (RETRY_SECONDS + CONNECT_SECONDS)
        text = f"{caught.value} {caught.value.__cause__}"
        assert s3.secret_key not in text
        assert "\n" not in text
        assert caught.value.__suppress_context__, "a traceback would show what the store has said"


class ForgetsConditions(BaseHTTPRequestHandler):
    """A store as old ones are: it takes every write."""

    def _answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.server.status)
        self.send_header("ETag", '"0"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_PUT = do_DELETE = do_POST = _answer  # noqa: N815 - names that http.server calls

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("status", [200, 501])
def test_a_store_without_conditional_writes_is_refused(status):
    with ThreadingHTTPServer(("127.0.0.1", 0), ForgetsConditions) as server:
        server.status = status
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = KEYS | {"fs.s3a.endpoint": f"http://127.0.0.1:{server.server_port}"}
        store = ObjectStore(Place.of("s3a://b/f", options, {}))
        with pytest.raises(StoreError, match="no conditional writes" if status == 200 else "."), Lock(store).held():
            pass
        server.shutdown()


# -- the same of both kinds


@pytest.fixture(params=["local", pytest.param("s3", marks=[pytest.mark.go, pytest.mark.timeout(400)])])
def place(request, tmp_path):
    if request.param == "local":
        return str(tmp_path)
    server = request.getfixturevalue("s3")
    return Place.of(server.url(unique("files")), server.options, {})


@pytest.fixture
def files(place):
    return files_of(place)


def put(files, name, data=b"data"):
    sink = files.writer(name)
    sink.write(data)
    assert not files.exists(name) or isinstance(files, LocalStore)
    sink.close()
    sink.close()
    assert sink.size == len(data)


def test_files_are_written_listed_moved_and_removed(files):
    files.check()
    assert (files.files(""), files.folders(""), files.names("")) == ({}, [], [])
    put(files, "staging/1/date=1/a.parquet")
    put(files, "staging/1/b.parquet", b"x" * 3)
    assert files.files("staging") == {"staging/1/date=1/a.parquet": 4, "staging/1/b.parquet": 3}
    assert (files.folders("staging"), "b.parquet" in files.names("staging/1")) == (["1"], True)
    assert files.move("staging/1/b.parquet", files, "there/b.parquet")
    assert not files.move("staging/1/b.parquet", files, "there/b.parquet")
    assert (files.exists("there/b.parquet"), files.exists("staging/1/b.parquet")) == (True, False)
    reader = files.reader("there/b.parquet")
    assert bytes(reader.read()) == b"xxx"
    reader.close()
    files.remove_folder("staging")
    files.remove_folder("staging")
    files.remove("none")
    assert files.files("") == {"there/b.parquet": 3}
    pickle.loads(pickle.dumps(files)).remove("there/b.parquet")
    assert files.files("") == {}


def test_of_many_that_make_a_file_at_once_one_does(files):
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            name = f"f/{number:02}"
            made = list(pool.map(lambda who, name=name: files.create(name, b"%d" % who), range(8)))
            assert made.count(True) == 1
            assert files.read(name) == b"%d" % made.index(True)
    assert files.names("f") == [f"{number:02}" for number in range(20)]
    files.replace("f/00", b"new")
    assert (files.read("f/00"), files.read("f/none")) == (b"new", None)


def test_a_write_whose_answer_was_lost_finds_its_own(s3):
    store = ObjectStore(Place.of(s3.url(unique("own")), s3.options, {}))
    assert store.create("a", b"mine")
    assert store.create("a", b"mine"), "it was tried again by the client below"
    assert not store.create("a", b"another's")


def test_a_lock_and_commits_need_nothing_more(s3):
    store = ObjectStore(Place.of(s3.url(unique("lock")), s3.options, {}))
    with Lock(store).held():
        with pytest.raises(LockHeld, match="has been writing to the table"), Lock(store).held():
            pass
        assert CommitLog(store).newest == 0
    with Lock(store).held() as lock:
        assert lock.taken_from is None
    with pytest.raises(TableError, match="commit 3 is missing"):
        CommitLog(store).read(3)


def test_a_place_has_its_credentials_under_the_names_of_each_library():
    given = {
        "fs.s3a.access.key": "k",
        "fs.s3a.secret.key": "s",
        "fs.s3a.endpoint": "http://h:9000",
        "fs.s3a.endpoint.region": "eu-1",
    }
    place = Place.of("s3a://b/t", given, {})
    assert place.as_options() == given
    assert place.as_delta_url() == place.canonical()
    delta = place.as_delta_options({"AWS_SESSION_TOKEN": "of other keys"})
    assert (delta["AWS_ENDPOINT_URL"], delta["AWS_ALLOW_HTTP"], delta["AWS_SESSION_TOKEN"]) == (
        "http://h:9000",
        "true",
        "",
    )
    assert (delta["AWS_ACCESS_KEY_ID"], delta["AWS_REGION"]) == ("k", "eu-1")
    iceberg = place.as_iceberg_properties()
    assert (iceberg["s3.access-key-id"], iceberg["s3.region"]) == ("k", "eu-1")
    assert iceberg["s3.force-virtual-addressing"] == "false"


def test_a_store_that_needs_no_credentials_is_asked_without():
    given = {"fs.s3a.aws.credentials.provider": "org.apache.AnonymousAWSCredentialsProvider"}
    place = Place.of("s3a://b/t", given, {})
    assert place.as_iceberg_properties()["s3.anonymous"] == "true"
    assert place.as_delta_options({})["AWS_REGION"] == "us-east-1"
    assert "AWS_SESSION_TOKEN" not in place.as_delta_options({})


def test_the_stores_of_google_and_azure():
    google = Place.of("gs://b/t", {"fs.gs.auth.service.account.json.keyfile": "/key.json"}, {})
    assert (google.as_options(), google.as_iceberg_properties()) == ({}, {})
    assert google.as_delta_options({})["service_account"] == "/key.json"
    host = "account.dfs.core.windows.net"
    azure = Place.of(f"abfss://c@{host}/t", {f"fs.azure.account.key.{host}": "secret"}, {})
    assert azure.as_iceberg_properties() == {"adls.account-key": "secret", "adls.account-name": "account"}
    by_login = {
        f"fs.azure.account.oauth2.client.id.{host}": "id",
        f"fs.azure.account.oauth2.client.endpoint.{host}": "https://login.microsoftonline.com/tenant/oauth2/token",
    }
    found = Place.of(f"abfss://c@{host}/t", by_login, {}).as_iceberg_properties()
    assert (found["adls.client-id"], found["adls.tenant-id"]) == ("id", "tenant")


class Configuration:
    """Hadoop's, as a session has it."""

    def __init__(self, **found):
        self.found = {name.replace("_", "."): value for name, value in found.items()}

    def hadoopConfiguration(self):
        return self

    def getPropsWithPrefix(self, prefix):
        return {name.removeprefix(prefix): value for name, value in self.found.items() if name.startswith(prefix)}


def test_a_session_has_the_options_of_a_scheme():
    found = Configuration(fs_s3a_access_key="k", fs_s3a_empty="", fs_gs_x="g")
    found.found[f"{HADOOP_NAMES[0]}x"] = "3"
    spark = SimpleNamespace(_jsc=found)
    assert hadoop_options(spark, "s3a://b") == {"fs.s3a.access.key": "k"}
    assert hadoop_options(spark, "gs://b") == {"fs.gs.x": "g"}
    assert hadoop_options(spark, "abfss://c@a/") == {}
    assert hadoop_options(spark, "memory://b") == {}
    assert hadoop_options(spark, "hdfs://n/")[f"{HADOOP_NAMES[0]}x"] == "3"


@pytest.mark.parametrize("url", ["s3a:///t", "s3a://b/t?x=1"])
def test_a_url_without_a_bucket_is_refused(url):
    with pytest.raises(StoreError, match="expected s3a://BUCKET/FOLDER"):
        Place.of(url, {}, {})


@pytest.mark.parametrize("way", ["create", "check"])
def test_a_store_for_which_its_client_has_no_conditions_is_refused(monkeypatch, way):
    """The check removes what it may have written."""
    obstore = pytest.importorskip("obstore")
    removed = []

    def put(opened, key, data, mode):
        raise NotImplementedError

    monkeypatch.setattr(obstore, "put", put)
    monkeypatch.setattr(obstore, "delete", lambda opened, keys: removed.append(keys))
    store = ObjectStore(Place.of("s3a://b/f", KEYS, {}))
    with pytest.raises(StoreError, match=r"s3a://b/f: the store has no conditional writes \(If-None-Match\)"):
        store.create("a", b"1") if way == "create" else store.check()
    assert [key.startswith("f/probe-") for key in removed] == ([] if way == "create" else [True])


def test_a_listing_and_a_look_at_one_object_agree_on_its_version(s3):
    store = files_of(Place.of(s3.url(unique("versions")), s3.options, {}))
    with store.writer("a/b") as upload:
        assert upload.writable()
        assert upload.write(b"0123") == upload.tell() == 4
    listed = store.listed("a")["a/b"]
    assert (listed.size_bytes, listed.version) == (4, store.version("a/b"))
    assert store.read_range("a/b", 1, 3) == b"12"
    store.replace("a/b", b"new")
    assert store.version("a/b") != listed.version
