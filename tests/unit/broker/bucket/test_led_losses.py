"""What cannot be read of open partitions is known until its objects are back, or nothing needs them."""

import random

import pytest

from horolog.broker.bucket.led_losses import LedLosses
from horolog.broker.bucket.lost_objects import ASKED_AGAIN_S
from horolog.broker.log.storage import StorageFault
from tests.support.bucket_segments import CONFIG, CountingStore, Reader, filled, upload
from tests.support.shipping import TOPIC_ID, new_partition

PLACE = (TOPIC_ID, 0)


class Led:
    """A partition in a bucket, and one beside it that has nothing there."""

    def __init__(self):
        self.store = CountingStore()
        self.described = upload(filled(random.Random(4)), self.store)
        self.reader = Reader(self.store)
        self.partition = self.reader.open(self.described, CONFIG)
        self.led = {PLACE: self.partition, (TOPIC_ID, 1): new_partition()}
        self.losses = LedLosses(self.led, lambda: self.reader.metas)

    def lose(self, key):
        """A reader finds out that an object is lost; returns it."""
        data = self.store.objects.pop(key)
        with pytest.raises(StorageFault, match="does not have it"):
            self.reader.served(lambda: self.partition.read(0, 1 << 20))
        return data


@pytest.fixture
def led():
    return Led()


def test_without_a_loss_there_is_nothing_to_say_or_to_ask(led):
    assert led.losses.lines() == {}
    led.losses.look()
    assert led.store.gets == 0
    assert repr(led.losses) == "<LedLosses of 2 partitions>"
    without = LedLosses({}, lambda: None)
    without.look()
    assert without.lines() == {}


def test_an_object_is_lost_until_it_is_back(led):
    key = led.described[0].meta_key
    data = led.lose(key)
    assert list(led.losses.lines()) == [key]
    assert "cannot be read" in led.losses.lines()[key]
    for times in range(2):
        led.reader.loop.advance(ASKED_AGAIN_S)
        asked = led.store.gets
        led.losses.look()
        led.reader.loop.advance()
        assert led.store.gets > asked
        assert bool(led.losses.lines()) is (times == 0)
        led.store.objects[key] = data


def test_what_no_open_partition_needs_is_not_asked_for(led):
    led.lose(led.described[0].log_key)
    del led.led[PLACE]
    led.reader.loop.advance(ASKED_AGAIN_S)
    asked = led.store.gets
    led.losses.look()
    led.reader.loop.advance()
    assert led.store.gets == asked
    assert (led.losses.lines(), len(led.reader.fetcher.lost)) == ({}, 0)
