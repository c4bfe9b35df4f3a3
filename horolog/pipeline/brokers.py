"""The path by which programs import the names of `pipeline.options.brokers`."""

from horolog.pipeline.options.brokers import BOOTSTRAP, CLIENTS, CONFIG_FILE, Brokers, Where, at, spark_options

__all__ = [
    "BOOTSTRAP",
    "CLIENTS",
    "CONFIG_FILE",
    "Brokers",
    "Where",
    "at",
    "spark_options",
]
