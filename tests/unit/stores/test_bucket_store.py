"""A store by URL, beside an S3 server that answers well or badly, and a folder of this machine."""

import pytest

pytest.importorskip("obstore")

from horolog.stores import bucket_store
from horolog.stores.bucket_store import BucketStore
from horolog.stores.faults import StoreError
from horolog.stores.object_store import Created, Outcome
from horolog.stores.place import StorePlace
from tests.support.hostile_store import ENVIRONMENT, Habit, serving


def opened(server, folder="f", seconds=5.0, retries=0):
    place = StorePlace.from_environment(f"s3://lake/{folder}".rstrip("/"), server.endpoint, ENVIRONMENT)
    return BucketStore(place, seconds, retries)


def a_life(store):
    """What every store does alike."""
    assert store.create("a/b/1", b"hello") == Created(Outcome.MADE)
    assert store.create("a/b/1", b"other") == Created(Outcome.TAKEN)
    assert store.create("a/bc", b"") == Created(Outcome.MADE)
    assert (store.get("a/b/1"), store.get_range("a/b/1", 1, 3), store.get_range("a/b/1", 3, 99)) == (
        b"hello",
        b"el",
        b"lo",
    )
    assert store.stat("a/b/1")[:2] == ("a/b/1", 5)
    assert store.stat("a/b/1").last_modified_ms > 1_700_000_000_000
    assert [one[:2] for one in store.list("a/b")] == [("a/b/1", 5)]
    assert {one.key for one in store.list()} == {"a/b/1", "a/bc"}
    assert (list(store.folders("a")), list(store.folders("a/b")), list(store.folders("b"))) == (["b"], [], [])
    with pytest.raises(StoreError):
        store.get_range("a/b/1", 5, 6)
    store.delete("a/b/1")
    store.delete("a/b/1")
    for call in (store.get, store.stat):
        with pytest.raises(FileNotFoundError):
            call("a/b/1")


@pytest.mark.parametrize("folder", ["f/g", ""])
def test_a_bucket(folder):
    with serving() as server:
        store = opened(server, folder)
        a_life(store)
        assert set(server.creates) == {"*"}
        assert "hidden" not in f"{store!r}"


def test_a_folder_of_this_machine(tmp_path):
    store = BucketStore(StorePlace.from_environment(f"file://{tmp_path}/new folder"))
    a_life(store)
    assert (tmp_path / "new folder" / "a" / "bc").read_bytes() == b""


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (400, "InvalidArgument", "the store answers 400 Bad Request (InvalidArgument)"),
        (403, "AccessDenied", "access denied (AccessDenied)"),
        (403, "", "access denied (403 Forbidden)"),
        (404, "NoSuchBucket", "there is no bucket lake"),
        (404, "", "the store answers 404 Not Found"),
        (409, "ConditionalRequestConflict", "the store answers 409 Conflict (ConditionalRequestConflict)"),
        (409, "", "the store answers 409 Conflict"),
        (429, "", "the store answers 429 Too Many Requests"),
        (500, "InternalError", "the store answers 500 Internal Server Error (InternalError)"),
        (501, "NotImplemented", "the store answers 501 Not Implemented (NotImplemented)"),
        (503, "SlowDown", "the store answers 503 Service Unavailable (SlowDown)"),
    ],
)
def test_a_refused_create_is_unknown_and_sent_once(status, code, said):
    with serving(refuses={"PUT": (status, code)}) as server:
        store = opened(server, retries=3)
        lasts = str(status) in {"400", "403", "501"} or code == "NoSuchBucket"
        assert store.create("k", b"1") == Created(Outcome.UNKNOWN, f"s3://lake/f: {said}", lasts)
        assert server.requests == [("PUT", "f/k")], "a retry would hide that the first attempt may have arrived"


@pytest.mark.parametrize("habit", [Habit.NEVER_ANSWERS, Habit.RESETS])
def test_a_create_without_an_answer_is_unknown_and_sent_once(habit):
    with serving(habit) as server:
        created = opened(server, seconds=0.3, retries=3).create("k", b"1")
        assert created.outcome is Outcome.UNKNOWN
        said = "does not answer in time" if habit is Habit.NEVER_ANSWERS else "cannot be reached"
        assert created.fault == f"s3://lake/f: {server.endpoint} {said}"
        assert len(server.requests) == 1


def test_a_large_create_has_more_time(monkeypatch):
    monkeypatch.setattr(bucket_store, "LARGE_BYTES", 10)
    monkeypatch.setattr(bucket_store, "LARGE_TIMES", 400)
    with serving(Habit.SLOW) as server:
        store = opened(server, seconds=0.05)
        assert store.create("small", b"1" * 10).outcome is Outcome.UNKNOWN
        assert store.create("large", b"1" * 11).outcome is Outcome.MADE


def test_a_create_whose_answer_was_lost_is_taken_by_itself():
    with serving(Habit.LOSES_FIRST_ANSWER) as server:
        store = opened(server)
        assert [store.create("k", b"mine").outcome for _ in range(2)] == [Outcome.UNKNOWN, Outcome.TAKEN]
        assert store.get("k") == b"mine"


def test_what_is_asked_is_asked_again_and_then_told_in_a_sentence():
    with serving(
        refuses={"GET": (503, "SlowDown"), "HEAD": (403, ""), "POST": (500, ""), "DELETE": (500, "")}
    ) as server:
        store = opened(server, retries=1)
        with pytest.raises(StoreError, match=r"^s3://lake/f: the store answers 503 Service Unavailable \(SlowDown\)$"):
            store.get("k")
        assert len(server.requests) == 2
        with pytest.raises(StoreError, match="access denied"):
            store.stat("k")
        with pytest.raises(StoreError, match="the store answers 503"):
            list(store.list())
        with pytest.raises(StoreError, match="the store answers 500"):
            store.delete("k")


@pytest.mark.parametrize(
    ("code", "said"), [("NoSuchBucket", "there is no bucket lake"), ("", "the store answers 404 Not Found")]
)
def test_a_list_of_a_bucket_that_is_missing(code, said):
    with serving(refuses={"GET": (404, code)}) as server, pytest.raises(StoreError, match=said):
        list(opened(server).list())
