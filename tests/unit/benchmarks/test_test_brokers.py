"""The measurement of brokers for tests, on ours: every question comes to an answer, and a start to its figures."""

from confluent_kafka import KafkaException

from benchmarks import test_brokers

OURS = "horolog in the test"


def test_a_start_has_its_figures():
    found = test_brokers.measure(OURS)
    assert 0 < found["ready_s"] < found["first_s"]
    assert found["next_s"] > 0


def test_ours_answers_every_question_with_yes(monkeypatch):
    def fails(_):
        raise KafkaException

    monkeypatch.setitem(test_brokers.QUESTIONS, "fails", fails)
    assert test_brokers.answers(OURS) == {
        "groups": "yes",
        "transactions": "yes",
        "lookups by time": "yes",
        "topics with settings": "yes",
        "fails": "no (KafkaException)",
    }
