"""Where a cluster is, and how to authenticate there: what jobs get besides Spark."""

from dataclasses import dataclass
from typing import Any

from horolog.client.security import Security

CLIENTS = "kafka."
"""The prefix of the clients' settings in Spark's options."""
BOOTSTRAP = "kafka.bootstrap.servers"
CONFIG_FILE = "kafka.config.file"
"""Names a properties file in Kafka's form, on the driver's machine, whose security settings are used."""


@dataclass(frozen=True, slots=True)
class Brokers:
    """Addresses, separated by commas, and the security settings that their listeners require."""

    bootstrap: str
    security: Security | None = None

    def __str__(self) -> str:
        return self.bootstrap


Where = str | Brokers
"""Addresses alone are those of open listeners."""


def at(where: Where) -> dict[str, Any]:
    """For `Client` and functions that create one."""
    if isinstance(where, str):
        return {"bootstrap": where}
    return {"bootstrap": where.bootstrap, "security": where.security}


def spark_options(where: Where) -> dict[str, str]:
    """For the data source."""
    if isinstance(where, str):
        return {BOOTSTRAP: where}
    security = {} if where.security is None else where.security.properties
    return {BOOTSTRAP: where.bootstrap, **{f"{CLIENTS}{name}": value for name, value in security.items()}}
