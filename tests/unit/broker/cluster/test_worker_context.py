"""What a worker is told survives its way through JSON."""

import json

from horolog.broker.cluster.worker_context import WorkerContext, http_socket

CONTEXT = WorkerContext(
    node=8,
    nodes=(7, 8, 9),
    sockets="/run/horolog-1",
    ports={"PLAINTEXT": {7: 9093, 8: 9094, 9: 9095}},
    is_first=False,
    own_ports={"PLAINTEXT": 9094},
    shared_ports={"PLAINTEXT": 9092},
)


def test_it_is_the_same_after_a_journey_as_json():
    assert WorkerContext.from_json(json.loads(json.dumps(CONTEXT.to_json()))) == CONTEXT


def test_workers_are_counted_from_one():
    assert CONTEXT.number == 2


def test_each_has_a_socket_of_its_own_for_its_health():
    assert CONTEXT.http_socket == http_socket("/run/horolog-1", 8) == "/run/horolog-1/8.http"
