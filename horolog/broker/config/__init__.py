"""Settings: where they come from, their types and bounds, and the parts of a broker that follow from them alone."""

__all__ = [
    "divided_settings",
    "first_topics",
    "group_type_settings",
    "inter_broker",
    "listener_keys",
    "listeners",
    "protection",
    "security_settings",
    "setting_types",
    "settings",
    "settings_sources",
    "shipped_files",
    "store_settings",
    "topic_settings",
]
