"""Which requests a fault is for, as it is read from the messages themselves."""

import inspect
from types import SimpleNamespace

import pytest

from horolog.broker.config.listeners import PEERS
from horolog.broker.handlers import HANDLERS
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.flat import flat_of
from horolog.protocol.messages.fetch import FetchRequest
from horolog.testing.fault_scope import NAMING_TOPICS, Named, Scope, Struck, api_named, named_by, scope_of
from tests.support.every_request import ABSENT, BUILDERS, OPEN, SECRET, UNKNOWN_ID, World, request_of

WORLD = World({OPEN: b"open-open-open-o", SECRET: b"secret-secret-se"})
NAMES = {WORLD.id_of(OPEN): OPEN, WORLD.id_of(SECRET): SECRET}
UNASKED = {ApiKey.METADATA, ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_LOG_DIRS}
"""Without a list they ask for all topics."""
OTHERS = {ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.DESCRIBE_QUORUM}
"""Their requests are about topics of their own."""


def broker(session=None):
    by_id = {known: SimpleNamespace(name=name) for known, name in NAMES.items()}
    sessions = SimpleNamespace(find=lambda number: session if number else None)
    return SimpleNamespace(cluster=SimpleNamespace(by_id=by_id), fetch_sessions=sessions)


def given(key, version):
    request = request_of(key, WORLD, version)
    return flat_of(request) if HANDLERS[key].flat else request


@pytest.mark.parametrize("key", [key for key in BUILDERS if key in NAMING_TOPICS and key not in UNASKED])
def test_every_api_that_names_topics_is_read(key):
    for version in range(HANDLERS[key].min_version, HANDLERS[key].max_version + 1):
        found = {NAMES.get(one.topic, one.topic) for one in named_by(key, broker(), given(key, version))}
        if found and key not in OTHERS:  # a version may name nothing, or all topics
            assert OPEN in found, (key, version)
            assert found <= {OPEN, SECRET, ABSENT, UNKNOWN_ID}
        assert found or key is not ApiKey.PRODUCE


def test_a_scope_by_topic_leaves_other_apis_alone():
    assert Scope(topic="t").is_for_api(ApiKey.PRODUCE)
    assert not Scope(topic="t").is_for_api(ApiKey.HEARTBEAT)
    assert Scope().is_for_api(ApiKey.HEARTBEAT)
    assert not Scope().is_for_api(ApiKey.API_VERSIONS)
    assert Scope(frozenset({ApiKey.API_VERSIONS})).is_for_api(ApiKey.API_VERSIONS)


def test_parts_by_name_id_and_partition():
    scope = Scope(topic=OPEN, partition=1)
    known = broker()
    assert scope.has(known, Named(OPEN, 1))
    assert scope.has(known, Named(WORLD.id_of(OPEN), 1))
    assert scope.has(known, Named(OPEN, None))
    assert not scope.has(known, Named(OPEN, 2))
    assert not scope.has(known, Named(SECRET, 1))
    assert not scope.has(known, Named(b"nobody has this!", 1))
    assert Scope().has(known, Named("any", 0))


def test_a_fetch_in_a_session_is_about_all_of_its_partitions():
    session = SimpleNamespace(positions={(WORLD.id_of(OPEN), 3): None})
    request = flat_of(FetchRequest(session_id=9, session_epoch=2))
    assert list(named_by(ApiKey.FETCH, broker(session), request)) == [Named(WORLD.id_of(OPEN), 3)]
    assert list(named_by(ApiKey.FETCH, broker(), flat_of(FetchRequest()))) == []


def test_clients():
    mine = SimpleNamespace(client_id="me", listener="PLAINTEXT")
    request = given(ApiKey.PRODUCE, 3)
    assert Scope(client_id="me").touches(ApiKey.PRODUCE, broker(), request, mine)
    assert not Scope(client_id="you").touches(ApiKey.PRODUCE, broker(), request, mine)
    assert not Scope().touches(ApiKey.PRODUCE, broker(), request, SimpleNamespace(client_id="me", listener=PEERS))
    assert Scope(topic=OPEN).touches(ApiKey.PRODUCE, broker(), request, mine)
    assert not Scope(topic="other").touches(ApiKey.PRODUCE, broker(), request, mine)


def test_names_of_apis():
    for name in ("produce", "Produce", "PRODUCE"):
        assert api_named(name) is ApiKey.PRODUCE
    for name in ("InitProducerId", "init_producer_id", "init-producer-id"):
        assert api_named(name) is ApiKey.INIT_PRODUCER_ID
    assert api_named(ApiKey.FETCH) is ApiKey.FETCH
    assert {api_named(API[key].name) for key in HANDLERS} == set(HANDLERS)
    with pytest.raises(ValueError, match="do you mean Produce"):
        api_named("prodduce")
    with pytest.raises(ValueError, match=r"no API 'xyz'$"):
        api_named("xyz")


def test_scopes_in_words():
    assert scope_of(client_id="c") == Scope(client_id="c")
    assert scope_of("fetch", "t", 2, times=3, lasts="2s") == Scope(frozenset({ApiKey.FETCH}), "t", 2, None, 3, 2000)
    assert scope_of(["fetch", ApiKey.PRODUCE]).apis == {ApiKey.FETCH, ApiKey.PRODUCE}
    assert Struck.__annotations__.keys() == set(inspect.signature(scope_of).parameters) - {"api"}
    with pytest.raises(ValueError, match="give topic=, too"):
        scope_of(partition=1)
    with pytest.raises(ValueError, match="expected at least 1"):
        scope_of(times=0)
    with pytest.raises(ValueError, match="expected a duration above 0"):
        scope_of(lasts=0)
