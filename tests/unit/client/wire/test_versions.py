"""Which version is spoken with which broker."""

import pytest

from horolog.client.values.errors import UnsupportedVersion
from horolog.client.wire.versions import (
    BEFORE_API_VERSIONS,
    NEWEST_SPOKEN,
    OLD_BROKER,
    BrokerVersions,
    api_of,
    versions_from,
)
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey


def broker(low, high, key=ApiKey.FETCH):
    return BrokerVersions({key: (low, high)})


@pytest.mark.parametrize(
    ("low", "high", "chosen"), [(0, 3, 3), (4, 11, 11), (4, 99, NEWEST_SPOKEN[ApiKey.FETCH]), (12, 18, 12), (0, 0, 0)]
)
def test_the_newest_that_both_speak(low, high, chosen):
    assert broker(low, high).choose(API[ApiKey.FETCH]) == chosen


def test_bounds_of_a_request_count():
    assert broker(0, 11).choose(API[ApiKey.FETCH], at_most=4) == 4
    with pytest.raises(UnsupportedVersion, match="Fetch v0 to v3"):
        broker(0, 3).choose(API[ApiKey.FETCH], at_least=4)


@pytest.mark.parametrize(("low", "high"), [(13, 18), (99, 100)])
def test_brokers_that_are_too_new_are_told_apart(low, high):
    with pytest.raises(UnsupportedVersion, match="Fetch"):
        broker(low, high).choose(API[ApiKey.FETCH])


def test_what_is_not_served_is_said_so():
    with pytest.raises(UnsupportedVersion, match="does not serve Produce"):
        broker(0, 3).choose(API[ApiKey.PRODUCE])
    assert not broker(0, 3).serves(ApiKey.PRODUCE)
    assert broker(0, 3).serves(ApiKey.FETCH, 3)
    assert not broker(0, 3).serves(ApiKey.FETCH, 4)


def test_brokers_without_api_versions_are_spoken_to_in_versions_that_exist():
    for key, (low, high) in BEFORE_API_VERSIONS.items():
        assert API[key].min_version <= low <= high <= API[key].max_version
    assert OLD_BROKER.choose(API[ApiKey.PRODUCE]) == 0
    assert not OLD_BROKER.told


def test_every_request_finds_its_api():
    for api in API.values():
        assert api_of(f"{api.name}Request") is api


def test_an_answer_becomes_ranges():
    answer = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=1, min_version=4, max_version=18)],
        finalized_features=[FinalizedFeatureKey(name="transaction.version", max_version_level=2)],
    )
    assert versions_from(answer) == BrokerVersions({1: (4, 18)}, {"transaction.version": 2})
