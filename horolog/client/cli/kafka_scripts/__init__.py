"""Kafka's own scripts as thin forms over our client: the options that compose files, init containers and health checks use.

`SCRIPTS` names the module of each script. A module has

    def configure(parser: argparse.ArgumentParser) -> None      # Kafka's options
    async def run(arguments: argparse.Namespace, console: Console) -> ExitCode

Results are printed in the form of Kafka's scripts, since other programs read them.
"""

SCRIPTS = {
    "kafka-topics": "horolog.client.cli.kafka_scripts.topics",
    "kafka-configs": "horolog.client.cli.kafka_scripts.configs",
    "kafka-console-producer": "horolog.client.cli.kafka_scripts.console_producer",
    "kafka-console-consumer": "horolog.client.cli.kafka_scripts.console_consumer",
    "kafka-consumer-groups": "horolog.client.cli.kafka_scripts.consumer_groups",
    "kafka-broker-api-versions": "horolog.client.cli.kafka_scripts.broker_api_versions",
}
