"""ApiVersions: which versions of which APIs a broker serves, the first question on most connections."""

from horolog.protocol.wire import Message, Struct, array, boolean, field, int16, int32, int64, string


class ApiVersionsRequest(Message, versions="0-4", flexible="3+"):
    """Answered in v0 with UNSUPPORTED_VERSION when its own version is not known."""

    client_software_name: str = field(string, "3+", ignorable=True)
    client_software_version: str = field(string, "3+", ignorable=True)


class ApiVersion(Struct):
    api_key: int = field(int16)
    min_version: int = field(int16)
    max_version: int = field(int16)


class SupportedFeatureKey(Struct):
    name: str = field(string)
    min_version: int = field(int16)
    max_version: int = field(int16)


class FinalizedFeatureKey(Struct):
    name: str = field(string)
    max_version_level: int = field(int16)
    min_version_level: int = field(int16)


class ApiVersionsResponse(Message, versions="0-4", flexible="3+"):
    """Always behind a header of version 0, so that a client can read it before it knows anything."""

    error_code: int = field(int16)
    api_keys: list[ApiVersion] = field(array(ApiVersion))
    throttle_time_ms: int = field(int32, "1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = field(array(SupportedFeatureKey), "3+", tag=0, ignorable=True)
    # -1: unknown
    finalized_features_epoch: int = field(int64, "3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = field(array(FinalizedFeatureKey), "3+", tag=2, ignorable=True)
    zk_migration_ready: bool = field(boolean, "3+", tag=3, ignorable=True)
