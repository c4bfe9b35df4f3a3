"""The files that come ready-made with the program: in `horolog/broker/config/files` where it was installed, in `config` where it is developed."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Shipped(NamedTuple):
    name: str
    sentence: str
    source: str
    """Its place below `config`."""

    @property
    def path(self) -> Path:
        installed = Path(__file__).with_name("files") / self.name
        return installed if installed.exists() else Path(__file__).parents[3] / "config" / self.source


FILES = (
    Shipped("server.properties", "every setting with a sentence and its default", "server.properties"),
    Shipped("horolog.service", "a systemd unit", "horolog.service"),
    Shipped("prometheus.yml", "a Prometheus configuration that scrapes a broker", "prometheus.yml"),
    Shipped("prometheus-rules.yml", "alerting rules for Prometheus", "prometheus-rules.yml"),
    Shipped("grafana-horolog.json", "a dashboard for Grafana", "grafana/horolog.json"),
)
"""pyproject.toml (`force-include`) puts each into the wheel, and the Dockerfile into the image."""


def named(names: list[str]) -> Iterator[Shipped]:
    """Those files, or all if none is named; raises KeyError."""
    by_name = {one.name: one for one in FILES}
    yield from (by_name[name] for name in names) if names else FILES
