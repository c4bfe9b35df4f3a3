"""UpdateFeatures 0-2: every feature is served at its newest level, that of Kafka 4.3, and stays there.

- An update to the present level succeeds and changes nothing. Any other is INVALID_UPDATE_VERSION at the top, as is the whole request:
  Kafka's messages name the reason. Before v2 a response also names each feature, with the message `NONE`, as real brokers do.
- v0 cannot ask for a downgrade: its `allow_downgrade` counts for nothing, as in Kafka.
Not done: downgrades, which Kafka allows for some features.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
FIRST_WITHOUT_RESULTS: Final = 2
METADATA: Final = "metadata.version"

FAILED_FOR_ALL: Final = "The update failed for all features since the following feature had an error: "
NO_SUCH_TYPE: Final = "The controller does not support the given upgrade type."
BELOW_0: Final = "A feature version cannot be less than 0."
NO_DOWNGRADE: Final = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)
ONLY_NEWEST: Final = "This broker serves every feature at its newest version only."
LOSES_METADATA: Final = {
    SAFE_DOWNGRADE: "Refusing to perform the requested downgrade because it might delete metadata information.",
    UNSAFE_DOWNGRADE: "Unsafe metadata downgrade is not supported in this version.",
}


class Levels(NamedTuple):
    """The levels of a feature that Kafka 4.3 supports; the newest of them is the one in use."""

    lowest: int
    newest: int


FEATURES: Final = {
    "eligible.leader.replicas.version": Levels(0, 1),
    "group.version": Levels(0, 1),
    "kraft.version": Levels(0, 1),
    METADATA: Levels(7, 30),
    "share.version": Levels(0, 1),
    "streams.version": Levels(0, 1),
    "transaction.version": Levels(0, 2),
}
FEATURES_EPOCH: Final = 0
"""Features never change here."""


def update(broker: BrokerView, request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    me = broker.placement.controller()
    for one in request.feature_updates:
        fault = wrong_with(one, me)
        if fault is not None:
            return UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message=FAILED_FOR_ALL + fault
            )
    named = request.feature_updates if context.version < FIRST_WITHOUT_RESULTS else []
    results = [UpdatableFeatureResult(feature=one.feature, error_message="NONE") for one in named]
    return UpdateFeaturesResponse(results=results)


def wrong_with(asked: FeatureUpdateKey, me: int) -> str | None:
    """Why an update is refused, in Kafka's order and words; None if the feature has this level."""
    fault = _fault(asked, me)
    if fault is None:
        return None
    if fault in LOSES_METADATA.values():
        levels = f"from {FEATURES[METADATA].newest} to {asked.max_version_level}"
        return f"Unsupported {METADATA} downgrade {levels}. {fault}"
    return f"Invalid update version {asked.max_version_level} for feature {asked.feature}. {fault}"


def _fault(asked: FeatureUpdateKey, me: int) -> str | None:
    kind, level, levels = asked.upgrade_type, asked.max_version_level, FEATURES.get(asked.feature)
    if kind not in {UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE}:
        return NO_SUCH_TYPE
    if level < 0:
        return BELOW_0
    if levels is None:
        return f"Local controller {me} does not support this feature."
    if not levels.lowest <= level <= levels.newest:
        return f"Local controller {me} only supports versions {levels.lowest}-{levels.newest}"
    if level == levels.newest:
        return None
    if kind == UPGRADE:
        return NO_DOWNGRADE
    return LOSES_METADATA[kind] if asked.feature == METADATA else ONLY_NEWEST
