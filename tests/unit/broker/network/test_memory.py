"""What connections hold together: who is stopped, resumed and closed, and that nothing is counted twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.network.memory import SHARES, AnswerMemory, RequestMemory, UnfinishedRequests


class Peer:
    """A connection that only counts."""

    def __init__(self, requests: RequestMemory | None = None, wanted_bytes: int = 0) -> None:
        self.requests = requests
        self.wanted_bytes = wanted_bytes
        self.resumed = 0
        self.left_bytes = 0
        self.reason = ""

    def resume_if_allowed(self) -> None:
        self.resumed += 1
        if self.requests is not None:
            self.requests.held_bytes += self.wanted_bytes

    def untaken_bytes(self) -> int:
        return self.left_bytes

    def cut(self, reason: str) -> None:
        assert not self.reason, "closed once"
        self.reason = reason


def test_those_who_stopped_first_go_on_first_and_only_as_long_as_there_is_room() -> None:
    requests = RequestMemory(100)
    peers = [Peer(requests, 60) for _ in range(4)]
    requests.held_bytes = 100
    for peer in peers:
        requests.stop(peer)
        requests.stop(peer)
    requests.resume()
    assert [peer.resumed for peer in peers] == [0, 0, 0, 0]
    requests.held_bytes = 0
    requests.resume()
    assert [peer.resumed for peer in peers] == [1, 1, 0, 0]
    requests.held_bytes = 0
    requests.resume()
    assert [peer.resumed for peer in peers] == [1, 1, 1, 1]


def test_a_peer_that_gives_back_at_once_lets_the_next_go_on_without_recursion() -> None:
    requests = RequestMemory(100)

    class Brief(Peer):
        def resume_if_allowed(self) -> None:
            super().resume_if_allowed()
            requests.resume()

    peers = [Brief() for _ in range(5000)]
    for peer in peers:
        requests.stop(peer)
    requests.resume()
    assert all(peer.resumed == 1 for peer in peers)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 500)), max_size=60))
def test_unfinished_requests_never_pass_the_bound(steps: list[tuple[int, int]]) -> None:
    unfinished = UnfinishedRequests(1000)
    peers = [Peer() for _ in range(10)]
    sizes: dict[int, int] = {}
    for number, size_bytes in steps:
        if peers[number].reason:
            continue
        sizes[number] = size_bytes
        before = {key: size for key, size in sizes.items() if not peers[key].reason}
        unfinished.changed(peers[number], size_bytes)
        gone = {key for key in before if peers[key].reason}
        sizes = {key: size for key, size in before.items() if key not in gone}
        assert unfinished.total_bytes == sum(sizes.values()) <= 1000
        assert not gone or min(before[key] for key in gone) >= max(sizes.values(), default=0), "the largest go"
        assert bool(gone) == (sum(before.values()) > 1000)


@given(st.lists(st.integers(0, 900), min_size=1, max_size=12), st.lists(st.integers(0, 900), min_size=12, max_size=12))
def test_answers_are_looked_at_again_before_anyone_is_closed(untaken: list[int], taken: list[int]) -> None:
    answers = AnswerMemory(1000)
    peers = [Peer() for _ in untaken]
    for peer, left_bytes, gone_bytes in zip(peers, untaken, taken, strict=False):
        peer.left_bytes = left_bytes
        answers.changed(peer, left_bytes)
        peer.left_bytes = max(0, left_bytes - gone_bytes)
        open_bytes = sum(one.left_bytes for one in peers if not one.reason)
        if any(one.reason for one in peers):
            assert "horolog.fetch.memory.max.bytes" in next(one.reason for one in peers if one.reason)
        assert open_bytes <= 2000
    if sum(untaken) <= 2000:
        assert not any(peer.reason for peer in peers)


def test_room_shrinks_and_comes_back() -> None:
    answers, peer = AnswerMemory(1000), Peer()
    assert answers.room_bytes == 1000
    answers.changed(peer, 700)
    assert (answers.room_bytes, answers.is_tight) == (300, False)
    peer.left_bytes = 1500
    answers.changed(peer, 1500)
    assert (answers.room_bytes, answers.is_tight) == (1000 // SHARES, True), "there is a share for everybody"
    answers.changed(peer, 0)
    assert answers.room_bytes == 1000
