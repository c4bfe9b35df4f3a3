"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs."""

import pytest

from horolog.broker.config.settings import SPECS
from horolog.broker.config.topic_settings import ROWS, SETTINGS_UNKNOWN
from horolog.broker.groups.group_settings import ROWS as GROUP_ROWS
from horolog.broker.handlers.configs import Change
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from tests.unit.broker.handlers.stand_ins import StandIn

TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32


@pytest.fixture
def broker():
    broker = StandIn(log_retention_ms="1000")
    broker.cluster.create_topic("t", 1, {"message.timestamp.type": "LogAppendTime", "segment.ms": "222"})
    return broker


def describe(broker, version, name, keys=None, kind=TOPIC, **more):
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    (result,) = broker.ask(ApiKey.DESCRIBE_CONFIGS, version, resources=[resource], **more).results
    return result


def alter(broker, version, name, configs, kind=TOPIC, **more):
    resource = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in configs],
    )
    (answer,) = broker.ask(ApiKey.ALTER_CONFIGS, version, resources=[resource], **more).responses
    return answer.error_code


def change(broker, version, name, changes, kind=TOPIC, **more):
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    (answer,) = broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, version, resources=[resource], **more).responses
    return answer.error_code


class TestDescribe:
    @pytest.mark.parametrize("version", range(5))
    def test_a_topic(self, broker, version):
        result = describe(broker, version, "t", ["message.timestamp.type", "retention.ms", "cleanup.policy", "no.such"])
        assert (result.error_code, result.error_message) == (0, "")
        configs = {config.name: config for config in result.configs}
        assert {name: config.value for name, config in configs.items()} == {
            "message.timestamp.type": "LogAppendTime",
            "retention.ms": "1000",
            "cleanup.policy": "delete",
        }
        assert not any(c.synonyms or c.documentation or c.read_only or c.is_sensitive for c in configs.values())
        if version >= 1:
            assert [configs[n].config_source for n in ("message.timestamp.type", "retention.ms", "cleanup.policy")] == [
                1,
                4,
                5,
            ]
        if version >= 3:
            assert [configs[n].config_type for n in ("message.timestamp.type", "retention.ms", "cleanup.policy")] == [
                2,
                5,
                7,
            ]

    def test_synonyms_and_sentences_where_asked_for(self, broker):
        (config,) = describe(
            broker, 4, "t", ["retention.ms"], include_synonyms=True, include_documentation=True
        ).configs
        assert (config.synonyms[0].name, config.synonyms[0].value, config.synonyms[0].source) == (
            "log.retention.ms",
            "1000",
            4,
        )
        assert config.documentation

    @pytest.mark.parametrize("keys", [None, []])
    def test_all_keys(self, broker, keys):
        assert {config.name for config in describe(broker, 1, "t", keys).configs} == set(ROWS)
        assert {config.name for config in describe(broker, 1, "1", keys, BROKER).configs} == set(SPECS)

    def test_read_only_is_what_may_not_change_while_running(self, broker):
        configs = describe(broker, 4, "1", ["node.id", "log.retention.ms"], BROKER).configs
        assert {config.name: config.read_only for config in configs} == {"node.id": True, "log.retention.ms": False}

    @pytest.mark.parametrize(
        ("kind", "name", "code"),
        [
            (TOPIC, "u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (TOPIC, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
            (BROKER, "99", ErrorCode.INVALID_REQUEST),
            (BROKER, "x", ErrorCode.INVALID_REQUEST),
            (LOGGER, "1", ErrorCode.INVALID_REQUEST),
            (9, "t", ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_what_is_not_here(self, broker, kind, name, code):
        result = describe(broker, 4, name, None, kind)
        assert (result.error_code, result.configs) == (code, [])
        assert bool(result.error_message) == (code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def test_the_empty_broker_has_what_all_share(self, broker):
        assert describe(broker, 4, "", None, BROKER).configs == []
        assert change(broker, 1, "", [("log.retention.ms", Change.SET, "7")], BROKER) == 0
        assert change(broker, 1, "1", [("log.retention.ms", Change.SET, "8")], BROKER) == 0
        (shared,) = describe(broker, 4, "", None, BROKER).configs
        assert (shared.name, shared.value, shared.config_source) == ("log.retention.ms", "7", 3)
        (own,) = describe(broker, 4, "1", ["log.retention.ms"], BROKER, include_synonyms=True).configs
        assert (own.value, own.config_source) == ("8", 2)
        assert [(s.value, s.source) for s in own.synonyms] == [("8", 2), ("7", 3), ("1000", 4)]


class TestAlter:
    @pytest.mark.parametrize("version", range(3))
    def test_replaces_the_whole_set(self, broker, version):
        assert alter(broker, version, "t", [("retention.ms", "333")]) == 0
        topic = broker.cluster.topics["t"]
        assert topic.overrides == {"retention.ms": "333"}
        assert topic.find(0).config.retention_ms == 333

    @pytest.mark.parametrize(
        ("name", "configs", "code"),
        [
            ("t", [("retention.ms", "abc")], ErrorCode.INVALID_CONFIG),
            ("t", [("no.such", "1")], ErrorCode.INVALID_CONFIG),
            ("t", [("retention.ms", None)], ErrorCode.INVALID_REQUEST),
            ("t", [("retention.ms", "1"), ("retention.ms", "2")], ErrorCode.INVALID_REQUEST),
            ("u", [("retention.ms", "1")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ],
    )
    def test_refusals_change_nothing(self, broker, name, configs, code):
        before = broker.cluster.topics["t"].overrides
        assert alter(broker, 2, name, configs) == code
        assert broker.cluster.topics["t"].overrides == before

    def test_validating_changes_nothing(self, broker):
        before = broker.cluster.topics["t"].overrides
        assert alter(broker, 2, "t", [("retention.ms", "1")], validate_only=True) == 0
        assert broker.cluster.topics["t"].overrides == before

    def test_a_resource_named_twice(self, broker):
        one = AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[])
        answers = broker.ask(ApiKey.ALTER_CONFIGS, 2, resources=[one, one]).responses
        assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST]
        assert broker.cluster.topics["t"].overrides

    def test_one_write_for_all_topics_and_its_failure_fails_all(self, broker):
        broker.cluster.create_topic("u")
        resources = [
            AlterConfigsResource(
                resource_type=TOPIC, resource_name=name, configs=[AlterableConfig(name="segment.ms", value="9")]
            )
            for name in ("t", "u", "x")
        ]
        broker.machine.storage.fail("sync", "horolog-journal", times=2)
        first = broker.ask(ApiKey.ALTER_CONFIGS, 2, resources=resources).responses
        storage, unknown = ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert {a.resource_name: a.error_code for a in first} == {"t": storage, "u": storage, "x": unknown}
        assert broker.cluster.topics["u"].overrides == {}
        again = broker.ask(ApiKey.ALTER_CONFIGS, 2, resources=resources).responses
        assert {a.resource_name: a.error_code for a in again} == {"t": 0, "u": 0, "x": unknown}


class TestIncremental:
    @pytest.mark.parametrize("version", range(2))
    def test_set_delete_append_subtract(self, broker, version):
        topic = broker.cluster.topics["t"]
        changes = [
            ("retention.ms", Change.SET, "333"),
            ("segment.ms", Change.DELETE, None),
            ("cleanup.policy", Change.APPEND, "compact"),
        ]
        assert change(broker, version, "t", changes) == 0
        assert topic.overrides == {
            "message.timestamp.type": "LogAppendTime",
            "retention.ms": "333",
            "cleanup.policy": "delete,compact",
        }
        assert topic.find(0).config.compact
        assert change(broker, version, "t", [("cleanup.policy", Change.APPEND, "compact")]) == 0
        assert topic.overrides["cleanup.policy"] == "delete,compact"
        assert change(broker, version, "t", [("cleanup.policy", Change.SUBTRACT, "delete")]) == 0
        assert topic.overrides["cleanup.policy"] == "compact"

    @pytest.mark.parametrize(
        ("changes", "code"),
        [
            ([("retention.ms", Change.APPEND, "5")], ErrorCode.INVALID_CONFIG),
            ([("retention.ms", Change.SUBTRACT, "5")], ErrorCode.INVALID_CONFIG),
            ([("no.such", Change.APPEND, "5")], ErrorCode.INVALID_CONFIG),
            ([("retention.ms", Change.SET, "abc")], ErrorCode.INVALID_CONFIG),
            ([("no.such", Change.SET, "1")], ErrorCode.INVALID_CONFIG),
            ([("retention.ms", Change.SET, None)], ErrorCode.INVALID_REQUEST),
            ([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
            ([("retention.ms", Change.SET, "5"), ("retention.ms", Change.SET, "6")], ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_refusals_change_nothing(self, broker, changes, code):
        before = dict(broker.cluster.topics["t"].overrides)
        assert change(broker, 1, "t", changes) == code
        assert broker.cluster.topics["t"].overrides == before

    def test_unknown_topic(self, broker):
        assert change(broker, 1, "u", [("retention.ms", Change.SET, "5")]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_validating_changes_nothing(self, broker):
        before = dict(broker.cluster.topics["t"].overrides)
        assert change(broker, 1, "t", [("retention.ms", Change.SET, "5")], validate_only=True) == 0
        assert broker.cluster.topics["t"].overrides == before

    @pytest.mark.parametrize(("node", "code"), [("1", 0), ("", 0), ("2", 42), ("x", 42)])
    def test_broker_settings_take_effect_at_once(self, broker, node, code):
        assert change(broker, 1, node, [("log.segment.bytes", Change.SET, "9000")], BROKER) == code
        expected = SPECS["log.segment.bytes"].default if code else 9000
        assert broker.cluster.topics["t"].find(0).config.segment_bytes == expected

    @pytest.mark.parametrize("value", ["abc", "0", "", "2147483648"])
    def test_kafkas_settings_that_are_not_used_are_checked(self, broker, value):
        key = "num.io.threads"
        assert change(broker, 1, "", [(key, Change.SET, value)], BROKER) == ErrorCode.INVALID_REQUEST
        assert alter(broker, 1, "", [(key, value)], BROKER) == ErrorCode.INVALID_REQUEST
        assert describe(broker, 4, "", [key], BROKER).configs == []
        assert change(broker, 1, "", [(key, Change.SET, "16")], BROKER) == ErrorCode.NONE
        (shown,) = describe(broker, 4, "", [key], BROKER).configs
        assert (shown.value, shown.config_type) == ("16", 3)

    @pytest.mark.parametrize("key", ["node.id", "listeners", "no.such"])
    def test_broker_settings_that_need_a_restart(self, broker, key):
        assert change(broker, 1, "1", [(key, Change.SET, "5")], BROKER) == ErrorCode.INVALID_REQUEST


class TestUnknownSettings:
    """A topic that was found without its settings keeps everything until its owner has spoken."""

    @pytest.fixture
    def found(self):
        broker = StandIn(log_retention_ms="1000")
        broker.cluster.create_topic("t", 1, {SETTINGS_UNKNOWN: "true"})
        return broker

    def known(self, broker):
        config = broker.cluster.topics["t"].config
        (entry,) = describe(broker, 4, "t", [SETTINGS_UNKNOWN]).configs
        assert config.delete is not (entry.value == "true")
        return config.delete

    def test_it_is_told_as_a_setting_of_the_topic(self, found):
        (entry,) = describe(found, 4, "t", [SETTINGS_UNKNOWN]).configs
        assert (entry.value, entry.config_source) == ("true", 1)
        assert not self.known(found)

    @pytest.mark.parametrize(
        ("changes", "known"),
        [
            ([("segment.ms", Change.SET, "5")], False),
            ([("retention.ms", Change.SET, "5")], True),
            ([("retention.bytes", Change.DELETE, None)], True),
            ([("cleanup.policy", Change.APPEND, "delete")], True),
            ([(SETTINGS_UNKNOWN, Change.SET, "false")], True),
            ([(SETTINGS_UNKNOWN, Change.DELETE, None)], True),
            ([("retention.ms", Change.SET, "5"), (SETTINGS_UNKNOWN, Change.SET, "true")], False),
        ],
    )
    def test_what_decides_over_deletion_makes_them_known(self, found, changes, known):
        assert change(found, 1, "t", changes) == 0
        assert self.known(found) is known

    @pytest.mark.parametrize(
        ("configs", "known"),
        [
            ([("segment.ms", "5")], False),
            ([("retention.ms", "5")], True),
            ([(SETTINGS_UNKNOWN, "false")], True),
            ([], False),
        ],
    )
    def test_a_whole_new_set_makes_them_known_if_it_says_what_goes(self, found, configs, known):
        assert alter(found, 2, "t", configs) == 0
        assert self.known(found) is known

    def test_an_empty_policy_is_a_policy(self, found):
        assert change(found, 1, "t", [("cleanup.policy", Change.SET, "")]) == 0
        assert found.cluster.topics["t"].overrides == {"cleanup.policy": ""}


@pytest.mark.parametrize(
    ("given", "shown"),
    [("127.0.0.1:0", "127.0.0.1:9464"), (":0", ":9464"), ("[::1]:0", "[::1]:9464"), (":90", ":90"), (None, None)],
)
def test_the_port_for_http_is_the_one_that_was_bound(given, shown):
    broker = StandIn(**({"horolog_http_listen": given} if given else {}))
    broker.http_port = 9464 if given else 0
    (config,) = describe(broker, 4, "1", ["horolog.http.listen"], BROKER).configs
    assert config.value == shown


class TestGroups:
    SESSION = "consumer.session.timeout.ms"

    def test_a_group_that_nobody_has_joined_is_described_with_defaults(self, broker):
        found = {one.name: (one.value, one.config_source) for one in describe(broker, 4, "new", kind=GROUP).configs}
        assert found.keys() == GROUP_ROWS.keys()
        assert found[self.SESSION] == ("45000", 5)

    def test_changes_are_kept_shown_and_taken_back(self, broker):
        assert change(broker, 1, "g", [(self.SESSION, Change.SET, "60000")], GROUP) == ErrorCode.NONE
        (config,) = describe(broker, 4, "g", [self.SESSION], GROUP).configs
        assert (config.value, config.config_source) == ("60000", 8)
        assert alter(broker, 2, "g", [("share.isolation.level", "read_committed")], GROUP) == ErrorCode.NONE
        (config,) = describe(broker, 4, "g", [self.SESSION], GROUP).configs
        assert (config.value, config.config_source) == ("45000", 5), "AlterConfigs replaces the whole set"
        assert change(broker, 1, "g", [("share.isolation.level", Change.DELETE, None)], GROUP) == ErrorCode.NONE
        assert broker.cluster.rules("group") == {}

    @pytest.mark.parametrize(
        ("name", "key", "value", "code"),
        [
            ("g", SESSION, "1", ErrorCode.INVALID_CONFIG),
            ("g", "no.such", "1", ErrorCode.INVALID_CONFIG),
            ("", SESSION, "45000", ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_what_may_not_be_is_refused(self, broker, name, key, value, code):
        assert change(broker, 1, name, [(key, Change.SET, value)], GROUP) == code
        assert broker.cluster.rules("group") == {}

    def test_a_group_without_a_name_is_not_described(self, broker):
        assert describe(broker, 4, "", kind=GROUP).error_code == ErrorCode.INVALID_REQUEST
