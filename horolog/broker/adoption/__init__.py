"""Takes over a data folder written by Kafka: reads its controller's metadata, and decides the settings of each topic."""
