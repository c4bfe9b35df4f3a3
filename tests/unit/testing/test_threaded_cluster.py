"""A cluster in its own thread: real clients follow its leaders, and the test's thread kills brokers."""

import inspect

import pytest
from confluent_kafka import Producer

from horolog.testing import EmbeddedCluster, ThreadedCluster, cluster_in_thread


def test_a_client_of_librdkafka_survives_the_leader():
    with cluster_in_thread(2) as cluster:
        cluster.create_topic("orders", 1)
        failed = []
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0})
        for value in (b"one", b"two"):
            producer.produce("orders", value, on_delivery=lambda error, _: failed.append(error))
            assert producer.flush(60) == 0
            if value == b"one":
                killed = cluster.leader("orders")
                cluster.kill(killed)
                assert cluster.running == [3 - killed]
                assert cluster.until_led("orders") == cluster.leaders("orders") == {0: 3 - killed}
        assert failed == [None, None]
        assert [one.value for one in cluster.records("orders")] == [b"one", b"two"]
        cluster.start(killed)
        cluster.move("orders", 0, to=killed)
        cluster.restart(3 - killed)
        cluster.stop(3 - killed)
        assert cluster.running == [killed]
        assert repr(cluster) == f"<ThreadedCluster at {cluster.bootstrap}>"


def test_its_methods_are_those_of_an_embedded_cluster():
    for name, method in vars(ThreadedCluster).items():
        if not name.startswith("_") and inspect.isfunction(method):
            assert inspect.signature(method) == inspect.signature(getattr(EmbeddedCluster, name))
            assert method.__doc__ == getattr(EmbeddedCluster, name).__doc__


def test_what_goes_wrong_at_the_start_is_the_starters():
    with pytest.raises(ValueError, match="brokers=0"), cluster_in_thread(0):
        pass
