"""Connections send old data one after the other, one in each turn of the event loop."""

import asyncio

from horolog.broker.network.send_turns import SendTurns


class Sender:
    """Wants some turns, and notes when it has one."""

    def __init__(self, name, turns, noted, wanted=1):
        self.name, self.turns, self.noted, self.wanted = name, turns, noted, wanted

    def go_on(self):
        if self.wanted and self.turns.take(self.go_on):
            self.wanted -= 1
            self.noted.append(self.name)
            asyncio.get_running_loop().call_soon(self.go_on)


def noted_in_each_turn(*wanted, closed=()):
    """The names of those that have sent, turn by turn, until nothing more is sent."""

    async def run():
        turns, noted, found = SendTurns(), [], []
        senders = [Sender(name, turns, noted, count) for name, count in wanted]
        for one in senders:
            one.go_on()
        for one in senders:
            if one.name in closed:
                one.wanted = 0
        assert repr(turns) == f"<SendTurns: {len(senders) - 1} connections wait>"
        for _ in range(20):
            found.append("".join(noted))
            noted.clear()
            await asyncio.sleep(0)
        return "/".join(found).rstrip("/")

    return asyncio.run(run())


def test_one_sends_in_each_turn_and_those_that_have_more_queue_again():
    assert noted_in_each_turn(("a", 2), ("b", 1), ("c", 3)) == "a/b/c/a/c/c"


def test_one_that_has_closed_meanwhile_costs_no_turn():
    assert noted_in_each_turn(("a", 1), ("b", 1), ("c", 1), closed="b") == "a/c"
