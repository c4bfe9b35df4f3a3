"""The broker's present settings, and the topic configurations that follow from them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import TopicConfig, resolve, usable
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.security.password_encoder import PasswordEncoder
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

MAX_SHARED_CONFIGS = 1_000
"""Resolved configurations that are kept to be shared by topics with equal overrides."""

DynamicConfigs = Mapping[str, Mapping[str, str]]
"""The settings changed while running, by the broker's number, or by an empty name for all brokers."""


class ClusterConfigs:
    """Static settings, overridden by those changed while running."""

    def __init__(self, settings: Settings) -> None:
        """Raises SettingsError."""
        self.settings = settings
        self.encoder = PasswordEncoder.of(settings)
        self.checks: list[Callable[[Settings], None]] = []
        """Further checks of a change; each raises SettingsError."""
        self._topics: dict[tuple[tuple[str, str], ...], TopicConfig] = {}

    def __repr__(self) -> str:
        return f"<ClusterConfigs with {len(self._topics)} of topics>"

    def topic(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The configuration that overrides give; topics with equal ones share it. Raises ClusterError."""
        key = tuple(sorted(overrides.items()))
        config = self._topics.get(key)
        if config is None:
            try:
                config = resolve(overrides, self.settings)
            except SettingsError as error:
                raise ClusterError(ErrorCode.INVALID_CONFIG, str(error)) from error
            if len(self._topics) >= MAX_SHARED_CONFIGS:
                self._topics.clear()
            self._topics[key] = config
        return config

    def usable(self, name: str, overrides: Mapping[str, str]) -> dict[str, str]:
        """The overrides that this release takes."""
        kept, left_out = usable(overrides, self.settings)
        for error in left_out:
            log.warning("topic %s: %s; this setting is ignored", name, error)
        return kept

    def with_dynamic(self, configs: DynamicConfigs, node: str = "") -> Settings:
        """The settings that a change would give this broker, or another one of the same static settings. Raises SettingsError."""
        of_all, of_one = configs.get("", {}), configs.get(node or str(self.settings.node_id), {})
        return self.settings.with_dynamic(self.encoder.decoded_configs(of_all), self.encoder.decoded_configs(of_one))

    def take_usable(self, configs: DynamicConfigs) -> dict[str, dict[str, str]]:
        """Take up what was changed while running; keys that this release does not take are left out."""
        kept: dict[str, dict[str, str]] = {}
        for node, overrides in configs.items():
            for key, value in overrides.items():
                changed = {**kept, node: {**kept.get(node, {}), key: value}}
                try:
                    self.settings = self.with_dynamic(changed)
                    kept = changed
                except SettingsError as error:
                    log.warning("a setting changed while running: %s; it is ignored", error)
        return kept

    def check(self, configs: DynamicConfigs, topics: Iterable[Mapping[str, str]], node: str = "") -> Settings:
        """The settings that a change would give, if all topics can live with them. Raises ClusterError."""
        try:
            settings = self.with_dynamic(configs, node)
            for overrides in {tuple(sorted(one.items())) for one in topics} | {()}:
                resolve(dict(overrides), settings)
            for check in self.checks:
                check(settings)
        except SettingsError as error:
            raise ClusterError(ErrorCode.INVALID_REQUEST, str(error)) from error
        return settings

    def take(self, settings: Settings) -> None:
        self.settings = settings
        self._topics.clear()
