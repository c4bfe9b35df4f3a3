"""Where a cluster is, and how to get in there: what jobs are given beside Spark."""

from dataclasses import dataclass
from typing import Any

from horolog.client.security import Security

CLIENTS = "kafka."
"""Before the names of the clients' settings in options of Spark."""
BOOTSTRAP = "kafka.bootstrap.servers"
CONFIG_FILE = "kafka.config.file"
"""Names a file in Kafka's form, of which the settings of security are taken, on the machine of the driver."""


@dataclass(frozen=True, slots=True)
class Brokers:
    """Addresses, joined by commas, and what their listeners ask for."""

    bootstrap: str
    security: Security | None = None

    def __str__(self) -> str:
        return self.bootstrap


Where = str | Brokers
"""Addresses alone are those of open listeners."""


def at(where: Where) -> dict[str, Any]:
    """For `Client` and whatever makes one."""
    if isinstance(where, str):
        return {"bootstrap": where}
    return {"bootstrap": where.bootstrap, "security": where.security}


def spark_options(where: Where) -> dict[str, str]:
    """For the data source."""
    if isinstance(where, str):
        return {BOOTSTRAP: where}
    security = {} if where.security is None else where.security.properties
    return {BOOTSTRAP: where.bootstrap, **{f"{CLIENTS}{name}": value for name, value in security.items()}}
