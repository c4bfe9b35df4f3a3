"""ApiVersions, versions 0 to 4: the APIs served, straight from the table of handlers.

- v3+: a client's name and version must look like one (letters, digits, '.' and '-'), else INVALID_REQUEST, as in Kafka.
- A version that is not served is answered with UNSUPPORTED_VERSION in a v0 body that names only the range of ApiVersions, so that
  the client can retry on the same connection (`handle_unsupported`; the dispatcher calls it).
- v3+: the features, each at the newest level of Kafka 4.3. Clients decide by `transaction.version` 2 to take a new epoch with every
  transaction (KIP-890). v3 cannot say that a feature begins at level 0 and leaves it out of those supported, as real brokers do.
"""

from __future__ import annotations

import re

from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.features import FEATURES, FEATURES_EPOCH
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

FIRST_VERSION_WITH_SOFTWARE_NAME = 3
FIRST_VERSION_WITH_LEVEL_0 = 4
MAX_SOFTWARE_NAME_LENGTH = 255

_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")

_SERVED = [
    ApiVersion(api_key=key, min_version=handler.min_version, max_version=handler.max_version)
    for key, handler in sorted(HANDLERS.items())
]

_SUPPORTED = [
    SupportedFeatureKey(name=name, min_version=one.lowest, max_version=one.newest) for name, one in FEATURES.items()
]
_SUPPORTED_ABOVE_0 = [one for one in _SUPPORTED if one.min_version]
_FINALIZED = [
    FinalizedFeatureKey(name=name, min_version_level=one.newest, max_version_level=one.newest)
    for name, one in FEATURES.items()
]


def handle(broker: BrokerView, request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:  # noqa: ARG001
    if context.version >= FIRST_VERSION_WITH_SOFTWARE_NAME and not (
        is_software_name(request.client_software_name) and is_software_name(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=_SERVED,
        supported_features=_SUPPORTED if context.version >= FIRST_VERSION_WITH_LEVEL_0 else _SUPPORTED_ABOVE_0,
        finalized_features_epoch=FEATURES_EPOCH,
        finalized_features=_FINALIZED,
    )


def handle_unsupported(broker: BrokerView, request: object, context: RequestContext) -> ApiVersionsResponse:  # noqa: ARG001
    """For a version outside the range; encoded as v0, whatever version the request has."""
    own = [version for version in _SERVED if version.api_key == ApiKey.API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)


def is_software_name(text: str) -> bool:
    return len(text) <= MAX_SOFTWARE_NAME_LENGTH and _SOFTWARE_NAME.fullmatch(text) is not None
