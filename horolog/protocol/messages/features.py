"""UpdateFeatures: at which level a cluster has each of Kafka's features."""

from horolog.protocol.wire import Message, Struct, array, boolean, field, int8, int16, int32, string


class FeatureUpdateKey(Struct):
    feature: str = field(string)
    max_version_level: int = field(int16)
    allow_downgrade: bool = field(boolean, "0")
    # 1 upgrade, 2 safe downgrade, 3 unsafe downgrade
    upgrade_type: int = field(int8, "1+", default=1)


class UpdateFeaturesRequest(Message, versions="0-2", flexible="0+"):
    timeout_ms: int = field(int32, default=60000)
    feature_updates: list[FeatureUpdateKey] = field(array(FeatureUpdateKey))
    validate_only: bool = field(boolean, "1+", default=False)


class UpdatableFeatureResult(Struct):
    feature: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class UpdateFeaturesResponse(Message, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    results: list[UpdatableFeatureResult] = field(array(UpdatableFeatureResult), "0-1", ignorable=True)
