"""What an opening says of itself."""

from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Opening, Stretch


def test_an_opening_is_led_in_the_epoch_of_its_last_stretch():
    lineage = (Stretch(0, Wal(1, 1), 7), Stretch(1, Wal(2, 2)))
    opening = Opening("t", b"i" * 16, 3, None, lineage)
    assert opening.epoch == 1
    assert opening.place == (b"i" * 16, 3)
    assert opening.lineage[-1].end is None
