"""UpdateFeatures: the newest level of each feature, and why there is no other. The messages are those of Kafka 4.3.1."""

import pytest

from horolog.broker.handlers.features import (
    FAILED_FOR_ALL,
    FEATURES,
    LOSES_METADATA,
    ONLY_NEWEST,
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
)
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.features import FeatureUpdateKey
from tests.unit.broker.handlers.stand_ins import StandIn

SOFTWARE = {"client_software_name": "a", "client_software_version": "1"}
NOT_SO = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)


def update(*asked, version=2, **fields):
    updates = [
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind if version else UPGRADE)
        for name, level, kind in asked
    ]
    return StandIn().ask(ApiKey.UPDATE_FEATURES, version, feature_updates=updates, **fields)


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("kind", [UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
@pytest.mark.parametrize("validate_only", [False, True])
def test_the_present_level_is_no_change(name, kind, validate_only):
    answer = update((name, FEATURES[name].newest, kind), validate_only=validate_only)
    assert (answer.error_code, answer.error_message, answer.results) == (ErrorCode.NONE, None, [])


@pytest.mark.parametrize("version", [0, 1])
def test_older_versions_name_each_feature(version):
    answer = update(("group.version", 1, UPGRADE), ("share.version", 1, UPGRADE), version=version)
    told = [(one.feature, one.error_code, one.error_message) for one in answer.results]
    assert told == [("group.version", 0, "NONE"), ("share.version", 0, "NONE")]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (
            ("nonsense", 1, UPGRADE),
            "Invalid update version 1 for feature nonsense. Local controller 1 does not support this feature.",
        ),
        (("", 0, UPGRADE), "Invalid update version 0 for feature . Local controller 1 does not support this feature."),
        (
            ("metadata.version", 31, UPGRADE),
            "Invalid update version 31 for feature metadata.version. Local controller 1 only supports versions 7-30",
        ),
        (
            ("metadata.version", 0, UNSAFE_DOWNGRADE),
            "Invalid update version 0 for feature metadata.version. Local controller 1 only supports versions 7-30",
        ),
        (
            ("metadata.version", -1, SAFE_DOWNGRADE),
            "Invalid update version -1 for feature metadata.version. A feature version cannot be less than 0.",
        ),
        (("metadata.version", 29, UPGRADE), f"Invalid update version 29 for feature metadata.version. {NOT_SO}"),
        (
            ("metadata.version", 29, SAFE_DOWNGRADE),
            f"Unsupported metadata.version downgrade from 30 to 29. {LOSES_METADATA[SAFE_DOWNGRADE]}",
        ),
        (
            ("metadata.version", 7, UNSAFE_DOWNGRADE),
            "Unsupported metadata.version downgrade from 30 to 7. Unsafe metadata downgrade is not supported in this version.",
        ),
        (("transaction.version", 1, UPGRADE), f"Invalid update version 1 for feature transaction.version. {NOT_SO}"),
        (
            ("transaction.version", 3, SAFE_DOWNGRADE),
            "Invalid update version 3 for feature transaction.version. Local controller 1 only supports versions 0-2",
        ),
        (
            ("group.version", 0, 4),
            "Invalid update version 0 for feature group.version. The controller does not support the given upgrade type.",
        ),
        (("group.version", 0, SAFE_DOWNGRADE), f"Invalid update version 0 for feature group.version. {ONLY_NEWEST}"),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_refusals(asked, reason, version):
    answer = update(("share.version", 1, UPGRADE), asked, version=version, validate_only=True)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_UPDATE_VERSION, FAILED_FOR_ALL + reason)
    assert answer.results == []


def test_the_oldest_version_cannot_downgrade():
    updates = [FeatureUpdateKey(feature="group.version", max_version_level=0, allow_downgrade=True)]
    answer = StandIn().ask(ApiKey.UPDATE_FEATURES, 0, feature_updates=updates)
    assert answer.error_message.endswith(NOT_SO)


def test_no_update_at_all():
    assert update(version=2).error_code == ErrorCode.NONE


def test_api_versions_tells_every_feature():
    answer = StandIn().ask(ApiKey.API_VERSIONS, 4, **SOFTWARE)
    assert {one.name: (one.min_version, one.max_version) for one in answer.supported_features} == FEATURES
    told = {(one.name, one.min_version_level, one.max_version_level) for one in answer.finalized_features}
    assert told == {(name, one.newest, one.newest) for name, one in FEATURES.items()}
    assert answer.finalized_features_epoch == 0


def test_version_3_cannot_tell_of_a_level_0():
    answer = StandIn().ask(ApiKey.API_VERSIONS, 3, **SOFTWARE)
    assert [one.name for one in answer.supported_features] == ["metadata.version"]
    assert len(answer.finalized_features) == len(FEATURES)
