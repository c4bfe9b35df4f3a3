"""What manifests that were superseded still need, and which of them are too old."""

import pytest

from horolog.broker.bucket.bucket_segment import described
from horolog.broker.bucket.manifest import Manifest, Page
from horolog.broker.bucket.manifest_history import History, history_of
from horolog.broker.bucket.manifest_pages import PageContent
from horolog.broker.bucket.names import SegmentName, segments
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.log.integrity import Contents
from tests.support.shipping import TOPIC_ID, ReadyStore, access_to, in_full

PLACE = TOPIC_ID, 0
FOLDER = segments(*PLACE)
BEFORE_MS = 100


class DatedStore(ReadyStore):
    """Manifest n was made at n times 10 ms."""

    def list(self, prefix, done, limit=None):
        super().list(
            prefix,
            lambda found: done([one._replace(last_modified_ms=10 * int(one.key.rpartition("/")[2])) for one in found]),
            limit,
        )


@pytest.fixture
def store():
    return DatedStore()


def segment(base):
    name = SegmentName(0, base, b"%16d" % base)
    return described(FOLDER, name, Contents(9, base + 10), 0)


def put(store, number, epoch, *bases, pages=()):
    made = Manifest(*PLACE, number, epoch, 0, b"n" * 16, tuple(map(segment, bases)), pages)
    store.objects[made.key] = made.encode()
    return made


def keys(*bases):
    return {key for base in bases for key in (segment(base).log_key, segment(base).meta_key)}


def history(store, newest):
    return in_full(history_of(access_to(store), PLACE, newest, BEFORE_MS))


def test_what_recent_manifests_name_stays_and_others_of_an_epoch_but_the_first_are_outdated(store):
    put(store, 1, 0, 0)
    second = put(store, 4, 0, 10)
    put(store, 7, 1, 20)
    put(store, 9, 1, 30)  # superseded at 110
    put(store, 11, 1, 30, 40)
    newest = put(store, 12, 2, 50)
    zombie = put(store, 13, 1, 60)
    found = history(store, newest)
    assert (found.outdated, found.unread) == ((second.key,), ())
    assert found.named == keys(30, 40, 50)
    assert zombie.key in store.objects


def test_a_partition_without_manifests_has_none(store):
    assert history(store, Manifest(*PLACE, 3, 0, 0, b"n" * 16)) == History()


def test_pages_that_only_older_manifests_name_are_read(store):
    name, lost = SegmentName(0, 0, b"p" * 16), SegmentName(0, 20, b"q" * 16)
    pages = Page(name, 20, 2, 18), Page(lost, 40, 2, 18)
    put(store, 11, 1, 40, pages=pages)
    content = PageContent(*PLACE, name.nonce, (segment(0), segment(10)))
    store.objects[name.page_key(FOLDER)] = content.encode()
    newest = put(store, 12, 1, 40)
    found = history(store, newest)
    assert found.named >= {*keys(0, 10, 40), name.page_key(FOLDER), lost.page_key(FOLDER)}
    assert found.unread == (range(20, 40),)


def test_a_manifest_that_goes_meanwhile_is_none_and_a_damaged_one_is_an_error(store):
    gone, newest = put(store, 11, 1, 0), put(store, 12, 1, 10)
    store.before_read = lambda key: store.objects.pop(gone.key, None)
    assert history(store, newest).named == keys(10)
    store.objects[gone.key] = b"damage"
    store.before_read = lambda key: None
    with pytest.raises(FormatError):
        history(store, newest)
