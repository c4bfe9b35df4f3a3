"""The closed loop against a peer of a few lines: counts, refusals, split answers, full sockets."""

import socket
import struct
import threading

import pytest

from benchmarks import paced, pump

REPLY_SIZE = 20
GOOD = struct.pack(">ii", REPLY_SIZE - 4, 0) + b"\0\0" + bytes(REPLY_SIZE - 10)
REFUSED = struct.pack(">ii", REPLY_SIZE - 4, 0) + struct.pack(">h", 3) + bytes(REPLY_SIZE - 10)


class Answerer:
    """Answers every frame with fixed bytes, in pieces of a chosen size; a thread per connection, ended by the peer's close."""

    def __init__(self, reply, piece=REPLY_SIZE, refuse_after=10**9):
        self.reply, self.piece, self.left = reply, piece, refuse_after
        self.frames = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.threads = [threading.Thread(target=self._accept)]
        self.threads[0].start()

    def _accept(self):
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            self.threads.append(threading.Thread(target=self._serve, args=(link,)))
            self.threads[-1].start()

    def _serve(self, link):
        with link, link.makefile("rb") as stream:
            try:
                while head := stream.read(4):
                    stream.read(struct.unpack(">i", head)[0])
                    self.frames += 1
                    reply = self.reply if self.frames <= self.left else REFUSED
                    for at in range(0, len(reply), self.piece):
                        link.sendall(reply[at : at + self.piece])
            except OSError:
                return

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()


def load(frame_bytes=50):
    return pump.Load([struct.pack(">i", frame_bytes) + bytes(frame_bytes)], [b"\0\0"], 8, REPLY_SIZE)


@pytest.mark.parametrize(("connections", "in_flight"), [(1, 1), (1, 5), (3, 1), (4, 3)])
@pytest.mark.parametrize("piece", [REPLY_SIZE, 7])
def test_every_request_is_answered_and_counted_once(connections, in_flight, piece):
    with Answerer(GOOD, piece) as peer:
        outcome = pump.run(peer.address, load(), connections, in_flight, 0.05)
        assert outcome.requests == len(outcome.latencies) > 0
    assert peer.frames == outcome.requests
    assert min(outcome.latencies) > 0


def test_every_connection_has_an_address_and_a_load_of_its_own():
    with Answerer(GOOD) as one, Answerer(GOOD) as other:
        outcome = pump.run_over([(one.address, load()), (other.address, load(70)), (one.address, load())], 2, 0.05)
        assert outcome.requests == one.frames + other.frames
    assert one.frames > 0
    assert other.frames > 0


def test_frames_larger_than_a_socket_takes_arrive_whole():
    with Answerer(GOOD) as peer:
        outcome = pump.run(peer.address, load(3_000_000), 2, 3, 0.1)
    assert outcome.requests == peer.frames >= 6


@pytest.mark.parametrize(("connections", "in_flight"), [(1, 1), (2, 2)])
def test_an_error_code_ends_the_run(connections, in_flight):
    with Answerer(GOOD, refuse_after=3) as peer, pytest.raises(pump.RefusedError, match="error code 3"):
        pump.run(peer.address, load(), connections, in_flight, 5.0)


@pytest.mark.parametrize(("connections", "in_flight"), [(1, 1), (2, 2)])
def test_an_answer_of_another_length_ends_the_run(connections, in_flight):
    short = struct.pack(">ii", 8, 0) + bytes(4)
    with Answerer(short, len(short)) as peer, pytest.raises(pump.RefusedError):
        pump.run(peer.address, load(), connections, in_flight, 5.0)


def test_the_open_loop_sends_on_time_and_matches_answers_to_sends():
    with Answerer(GOOD) as peer:
        beat = paced.run(peer.address, load(), 200, 0.1)
    assert len(beat.sent) == len(beat.acknowledged) == peer.frames == 20
    assert beat.sent[-1] - beat.sent[0] >= 0.09
    assert min(beat.acknowledged) > 0


def test_the_open_loop_refuses_an_error_code():
    with Answerer(GOOD, refuse_after=2) as peer, pytest.raises(pump.RefusedError, match="error code 3"):
        paced.run(peer.address, load(), 200, 0.5)
