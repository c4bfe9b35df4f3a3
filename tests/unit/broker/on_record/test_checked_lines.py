"""Lines with a checksum each come back as they were written, and damage costs the line that it hit."""

import pytest

from horolog.broker.on_record.checked_lines import UnreadableLine, encode_line, read_lines

HEAD, FIRST, SECOND = {"version": 1}, {"name": 'réglé "x"\n'}, {"name": "b", "of": [1, None]}
LINES = [encode_line(one) for one in (HEAD, FIRST, SECOND)]


def read(data, take_other=None):
    """What was passed on as the head, what as others, and what could not be read."""
    taken_heads, others = [], []
    take = take_other or (lambda content, line: others.append((content, line)))
    unreadable = read_lines(data, taken_heads.append, take)
    return taken_heads, others, unreadable


def test_what_is_written_comes_back_with_its_text():
    data = "".join(LINES).encode("ascii")
    assert data.startswith(b'023f7ace {"version": 1}\n')
    assert read(data) == ([HEAD], [(FIRST, LINES[1]), (SECOND, LINES[2])], [])
    assert read(b"") == ([], [], [])


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_flipped_bit_costs_one_line(number):
    lines = [bytearray(one.encode("ascii")) for one in LINES]
    lines[number - 1][-4] ^= 4
    taken_heads, others, unreadable = read(b"".join(lines))
    assert len(taken_heads) + len(others) == 2
    assert unreadable == [UnreadableLine(number, "wrong checksum")]


@pytest.mark.parametrize("line", [b"", b"0", b"deadbeef", b"no checksum here", b"\xff" * 40])
def test_bytes_that_are_no_line_are_told_unless_there_are_none(line):
    unreadable = read(line + b"\n")[2]
    assert [one.number for one in unreadable] == ([1] if line else [])


def test_what_is_no_object_is_not_passed_on():
    (one,) = read(encode_line([1, 2]).encode("ascii"))[2]
    assert one == UnreadableLine(1, "no object")


def test_a_line_that_is_not_taken_is_told_with_the_reason():
    def refuses(content, _):
        return {}[content["name"]]

    assert read("".join(LINES).encode("ascii"), refuses)[2] == [
        UnreadableLine(2, repr(FIRST["name"])),
        UnreadableLine(3, "'b'"),
    ]
