"""Environments of typical compose files for a single Kafka broker, by image.

Each: the variables, the opened listeners (name, host, port), and the advertised address of each listener.
"""

from typing import NamedTuple


class Known(NamedTuple):
    environment: dict[str, str]
    opened: list[tuple[str, str, int]]
    told: dict[str, tuple[str, int]]


APACHE = Known(
    {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "CONTROLLER://localhost:9091,HOST://0.0.0.0:9092,DOCKER://0.0.0.0:9093",
        "KAFKA_ADVERTISED_LISTENERS": "HOST://localhost:9092,DOCKER://kafka:9093",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,DOCKER:PLAINTEXT,HOST:PLAINTEXT",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9091",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "DOCKER",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "1",
        "KAFKA_NUM_PARTITIONS": "3",
        "KAFKA_LOG_DIRS": "/tmp/kraft-combined-logs",
        "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    },
    [("HOST", "0.0.0.0", 9092), ("DOCKER", "0.0.0.0", 9093)],
    {"HOST": ("localhost", 9092), "DOCKER": ("kafka", 9093)},
)

CONFLUENT = Known(
    {
        "KAFKA_NODE_ID": "1",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_JMX_PORT": "9101",
        "KAFKA_JMX_HOSTNAME": "localhost",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@broker:29093",
        "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:29092,CONTROLLER://0.0.0.0:29093,PLAINTEXT_HOST://0.0.0.0:9092",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LOG_DIRS": "/tmp/kraft-combined-logs",
        "KAFKA_CONFLUENT_LICENSE_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_CONFLUENT_BALANCER_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_METRIC_REPORTERS": "io.confluent.metrics.reporter.ConfluentMetricsReporter",
        "KAFKA_HEAP_OPTS": "-Xmx512m",
        "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
    },
    [("PLAINTEXT", "0.0.0.0", 29092), ("PLAINTEXT_HOST", "0.0.0.0", 9092)],
    {"PLAINTEXT": ("broker", 29092), "PLAINTEXT_HOST": ("localhost", 9092)},
)

CONFLUENT_WITH_ZOOKEEPER = Known(
    {
        "KAFKA_BROKER_ID": "1",
        "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
        "KAFKA_LOG4J_LOGGERS": "kafka.controller=INFO",
        "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "true",
    },
    [("PLAINTEXT", "", 29092), ("PLAINTEXT_HOST", "", 9092)],
    {"PLAINTEXT": ("broker", 29092), "PLAINTEXT_HOST": ("localhost", 9092)},
)

BITNAMI = Known(
    {
        "KAFKA_CFG_NODE_ID": "0",
        "KAFKA_CFG_PROCESS_ROLES": "controller,broker",
        "KAFKA_CFG_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093,EXTERNAL://:9094",
        "KAFKA_CFG_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092,EXTERNAL://localhost:9094",
        "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,EXTERNAL:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": "0@kafka:9093",
        "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CFG_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
        "KAFKA_CFG_LOG_RETENTION_HOURS": "24",
        "KAFKA_ENABLE_KRAFT": "yes",
        "KAFKA_KRAFT_CLUSTER_ID": "abcdefghijklmnopqrstuv",
        "KAFKA_CLIENT_USERS": "user",
        "ALLOW_PLAINTEXT_LISTENER": "yes",
        "BITNAMI_DEBUG": "false",
    },
    [("PLAINTEXT", "", 9092), ("EXTERNAL", "", 9094)],
    {"PLAINTEXT": ("kafka", 9092), "EXTERNAL": ("localhost", 9094)},
)

WURSTMEISTER = Known(
    {
        "KAFKA_BROKER_ID": "1",
        "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
        "KAFKA_LISTENERS": "INSIDE://:9093,OUTSIDE://:9092",
        "KAFKA_ADVERTISED_LISTENERS": "INSIDE://kafka:9093,OUTSIDE://localhost:9092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "INSIDE",
        "KAFKA_CREATE_TOPICS": "one:1:1,two:3:1:compact",
        "KAFKA_MESSAGE_MAX_BYTES": "2000000",
    },
    [("INSIDE", "", 9093), ("OUTSIDE", "", 9092)],
    {"INSIDE": ("kafka", 9093), "OUTSIDE": ("localhost", 9092)},
)

KUBERNETES = Known(
    {
        # What a cluster sets by itself for a service named kafka.
        "KAFKA_PORT": "tcp://10.0.0.7:9092",
        "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.7",
        "KAFKA_SERVICE_HOST": "10.0.0.7",
        "KAFKA_SERVICE_PORT_CLIENT": "9092",
        "KAFKA_LISTENERS": "PLAINTEXT://:9092",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka-0.kafka:9092",
    },
    [("PLAINTEXT", "", 9092)],
    {"PLAINTEXT": ("kafka-0.kafka", 9092)},
)

ALL = {
    "apache/kafka": APACHE,
    "confluentinc/cp-kafka": CONFLUENT,
    "confluentinc/cp-kafka with ZooKeeper": CONFLUENT_WITH_ZOOKEEPER,
    "bitnami/kafka": BITNAMI,
    "wurstmeister/kafka": WURSTMEISTER,
    "Kubernetes": KUBERNETES,
}
