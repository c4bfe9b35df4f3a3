"""Takes over a data folder written by Kafka: reads its controller's metadata, and decides the settings of each topic."""

__all__ = [
    "adopted_file",
    "folders",
    "forecast",
    "given",
    "giving",
    "report",
    "takeover",
]
