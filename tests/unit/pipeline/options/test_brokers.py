"""A cluster as jobs name it becomes arguments of a client and options of the data source."""

from horolog.client.security import Security
from horolog.pipeline.options.brokers import Brokers, at, spark_options

SECURED = Security.of(
    {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "hidden",
    }
)


def test_addresses_alone_are_of_open_listeners():
    assert at("h:1,i:2") == {"bootstrap": "h:1,i:2"}
    assert spark_options("h:1") == {"kafka.bootstrap.servers": "h:1"}
    assert at(Brokers("h:1")) == {"bootstrap": "h:1", "security": None}
    assert spark_options(Brokers("h:1")) == {"kafka.bootstrap.servers": "h:1"}


def test_security_settings_go_along():
    brokers = Brokers("h:1", SECURED)
    assert at(brokers)["security"] is SECURED
    options = spark_options(brokers)
    assert options["kafka.bootstrap.servers"] == "h:1"
    assert options["kafka.security.protocol"] == "SASL_PLAINTEXT"
    assert {name for name in options if not name.startswith("kafka.")} == set()


def test_a_cluster_is_shown_by_its_addresses_alone():
    assert f"{Brokers('h:1', SECURED)}" == "h:1"
    assert "hidden" not in repr(Brokers("h:1", SECURED))
