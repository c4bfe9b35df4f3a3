"""New partitions go where there are the fewest."""

from horolog.broker.log.manager.placing import Placing


def test_the_folder_with_the_fewest_gets_the_next_one():
    assert Placing({"a": 5, "b": 3}).place(range(4)) == {"b": [0, 1, 3], "a": [2]}


def test_the_first_of_several_goes_first():
    assert Placing({"a": 0, "b": 0}).place([7, 8, 9]) == {"a": [7, 9], "b": [8]}


def test_what_was_placed_before_is_counted():
    placing = Placing({"a": 0, "b": 1})
    placing.place([0])
    assert placing.place([1, 2]) == {"a": [1], "b": [2]}
    assert repr(placing) == "Placing({'a': 2, 'b': 2})"


def test_with_one_folder_nothing_has_to_be_said():
    assert Placing({}).place(range(4)) == {}
