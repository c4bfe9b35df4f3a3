"""Keys below the prefix that brokers share."""

import pytest

from horolog.broker.bucket.names import LOG, SegmentName, Wal, key, number_of, segments


def test_keys_of_a_wal():
    wal = Wal(3, 17)
    assert (str(wal), wal.folder, wal.marks) == ("3-17", "wal/3-17", "mark/3-17")
    assert wal.merged(bytes(range(16))) == "merged/3-17/000102030405060708090a0b0c0d0e0f"
    assert Wal.parse("3-17") == Wal.of("3-17") == wal
    assert Wal.parse(f"{2**31 - 1}-{2**63 - 1}") == (2**31 - 1, 2**63 - 1)


@pytest.mark.parametrize(
    "text", ["", "3", "3-", "-3-1", "03-1", "3-01", "3-1 ", "3-1\n", "٣-1", f"{2**31}-1", f"1-{2**63}", None, 3, b"3-1"]
)
def test_what_names_no_wal(text):
    with pytest.raises(ValueError, match="names no WAL"):
        Wal.parse(text)
    assert Wal.of(text) is None


def test_numbers():
    assert key(LOG, 42) == "meta/log/00000000000000000042"
    assert number_of(key(LOG, 2**63 - 1)) == 2**63 - 1
    assert [number_of(one) for one in ("meta/log/42", "meta/log/x", f"a/{'9' * 20}", f"a/{'٣' * 20}")] == [None] * 4
    for number in (-1, 2**63):
        with pytest.raises(ValueError, match="numbers no object"):
            key(LOG, number)


def test_names_of_segments():
    name, folder = SegmentName(4, 70, bytes(range(16))), segments(b"t" * 16, 3)
    assert folder == f"data/{(b't' * 16).hex()}/3"
    assert str(name) == "4-00000000000000000070-000102030405060708090a0b0c0d0e0f"
    for key_of, kind in ((name.log_key, "log"), (name.meta_key, "meta"), (name.page_key, "page")):
        assert key_of(folder) == f"{folder}/{name}.{kind}"
        assert SegmentName.of_key(key_of(folder)) == name
    assert SegmentName.parse(str(name)) == name


@pytest.mark.parametrize(
    "key_of", ["data/t/3/notes", "data/t/3/notes.log", f"4-{'0' * 20}-{'0' * 32}.txt", f"04-{'0' * 20}-{'0' * 32}.log"]
)
def test_what_names_no_segment(key_of):
    assert SegmentName.of_key(key_of) is None


@pytest.mark.parametrize("text", [None, 4, f"4-{'9' * 20}-{'0' * 32}", f"4-{'0' * 20}-{'A' * 32}"])
def test_what_is_no_name_of_a_segment(text):
    assert SegmentName.parse(text) is None
