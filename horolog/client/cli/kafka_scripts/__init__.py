"""Kafka's own scripts as thin wrappers of our client, with the options that compose files, init containers and health checks use.

`SCRIPTS` names the module of each script. A module has

    def configure(parser: argparse.ArgumentParser) -> None      # Kafka's options
    async def run(arguments: argparse.Namespace, console: Console) -> ExitCode

Results are printed in the format of Kafka's scripts, since other programs parse them.
"""

SCRIPTS = {
    "kafka-topics": "horolog.client.cli.kafka_scripts.topics",
    "kafka-configs": "horolog.client.cli.kafka_scripts.configs",
    "kafka-console-producer": "horolog.client.cli.kafka_scripts.console_producer",
    "kafka-console-consumer": "horolog.client.cli.kafka_scripts.console_consumer",
    "kafka-consumer-groups": "horolog.client.cli.kafka_scripts.consumer_groups",
    "kafka-broker-api-versions": "horolog.client.cli.kafka_scripts.broker_api_versions",
}
