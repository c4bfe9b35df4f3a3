"""A change is seen by whoever compares numbers, whatever thread noted it."""

from concurrent.futures import ThreadPoolExecutor

from horolog.broker.log.partition import RareChanges


def test_the_number_differs_after_each_change() -> None:
    changes = RareChanges()
    seen = [changes.number]
    for _ in range(3):
        changes.note()
        seen.append(changes.number)
    assert len(set(seen)) == 4
    assert repr(changes) == "<RareChanges: 3>"


def test_changes_of_several_threads_are_seen() -> None:
    changes = RareChanges()
    with ThreadPoolExecutor(2) as pool:
        for _ in range(20):
            pool.submit(changes.note)
    before = changes.number
    changes.note()
    assert changes.number not in (0, before)
