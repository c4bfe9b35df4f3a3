"""A slice of a file that waits: it is sent or read, keeps its file open, and is never sent where its bytes may be others."""

import os
import socket
from pathlib import Path

import pytest

from horolog.broker.log.storage import RealStorage, StorageFault
from horolog.broker.log.storage.file_slice import SENT_IN_A_TURN_BYTES
from horolog.broker.log.storage.real_file import CAN_SEND

pytestmark = pytest.mark.skipif(not CAN_SEND, reason="the system sends no files")

CONTENT = os.urandom(1_000_000)


@pytest.fixture
def log(tmp_path):
    file = RealStorage().create(str(tmp_path / "log"))
    file.pwritev([CONTENT], 0)
    yield file
    file.close()


def test_what_is_taken_is_gone_and_what_is_read_is_not(log):
    piece = log.unread(1_000, 70)
    assert piece.read() == piece.read() == CONTENT[70:1_070]
    assert piece.take(10) == CONTENT[70:80]
    assert len(piece) == 990
    assert piece.take(5_000) == CONTENT[80:1_070]
    assert len(piece) == 0


def test_kept_it_outlasts_the_name_and_the_closing_of_its_file(log):
    kept, other = log.unread(1_000, 70), log.unread(1_000, 70)
    kept.keep()
    kept.keep()
    log.close()
    Path(log.path).unlink()
    assert kept.read() == CONTENT[70:1_070]
    with pytest.raises(StorageFault, match="No such file"):
        other.read()
    assert log.unread(10, 0) is None, "that could not be read is known before the next answer"
    kept.let_go()
    kept.let_go()
    with pytest.raises(StorageFault, match="No such file"):
        kept.read()


def test_a_file_that_was_cut_by_others_is_told(log):
    piece = log.unread(1_000, len(CONTENT) - 1_000)
    piece.keep()
    os.truncate(log.path, len(CONTENT) - 10)
    with pytest.raises(StorageFault, match="ends 10 bytes before"):
        piece.take(1_000)
    piece.let_go()


@pytest.mark.parametrize("how", ["send", "take", "read"])
def test_withdrawn_it_is_not_given(log, how):
    piece, later = log.unread(1_000, 0), None
    log.withdraw()
    later = log.unread(1_000, 0)
    with pytest.raises(StorageFault, match="its end was lost or rewritten"):
        piece.send(-1) if how == "send" else getattr(piece, how)(*[10][: how == "take"])
    assert later.read() == CONTENT[:1_000]


def test_a_peer_that_takes_everything_at_once_gets_it_in_turns(tmp_path, monkeypatch):
    file = RealStorage().create(str(tmp_path / "large"))
    size = 3 * SENT_IN_A_TURN_BYTES
    file.truncate(size)
    piece = file.unread(size, 0)
    monkeypatch.setattr(
        os, "sendfile", lambda _socket, _file, _position, wanted: min(wanted, SENT_IN_A_TURN_BYTES // 2)
    )
    turns = 1
    while not piece.send(-1):
        turns += 1
    assert turns == 2
    file.close()


def test_it_is_sent_by_the_descriptor_that_is_kept(log):
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        piece = log.unread(1_000, 5)
        piece.keep()
        log.close()
        Path(log.path).unlink()
        assert piece.send(ours.fileno())
        assert theirs.recv(2_000) == CONTENT[5:1_005]
        piece.let_go()
