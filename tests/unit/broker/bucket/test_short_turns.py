"""Much work leaves the loop free in between."""

from horolog.broker.bucket import short_turns
from horolog.broker.bucket.short_turns import ShortTurns


class World:
    """Turns that the test gives, and a clock that goes on with each step."""

    def __init__(self, count):
        self.left, self.turns, self.now_s, self.step_s = count, [], 0.0, 0.0
        self.work = ShortTurns(self.step, self.turns.append, lambda: self.now_s)

    def step(self):
        self.now_s += self.step_s
        self.left -= 1
        return self.left > 0

    def lefts(self):
        """How much is left after each turn."""
        found = []
        while self.turns:
            (turn,) = self.turns
            self.turns.clear()
            turn()
            found.append(self.left)
        return found


def test_some_steps_have_one_turn(monkeypatch):
    monkeypatch.setattr(short_turns, "MOST_IN_TURN", 4)
    world = World(10)
    world.work.go_on()
    assert "due" in repr(world.work)
    world.work.go_on()
    assert world.lefts() == [6, 2, 0]
    world.left = 3
    world.work.go_on()
    assert world.lefts() == [0]


def test_a_turn_ends_in_time():
    world = World(5)
    world.step_s = short_turns.TURN_S * 0.6
    world.work.go_on()
    assert world.lefts() == [3, 1, 0]
