"""Settings come from file, environment and flags in that order, and what nobody knows stops the start."""

import subprocess
import sys

import pytest

from horolog.broker.config import settings as settings_module
from horolog.broker.config import unused_keys
from horolog.broker.config.setting_types import ConfigSource, ConfigType, SettingsError, render
from horolog.broker.config.settings import SPECS, Layers, Settings, load, magic_of_release
from horolog.broker.config.settings_sources import kafka_keys, key_of_variable


def test_defaults_are_what_the_table_says_and_are_allowed():
    settings, warnings = load(None, {}, {})
    assert warnings == []
    assert settings_module._table() == SPECS
    for key, spec in SPECS.items():
        assert settings.value(key) == spec.default
        assert spec.nullable or spec.parse(render(spec.default)) == spec.default
        assert not settings.is_set(key)


def test_every_key_is_kafkas_or_marked_as_ours():
    strangers = [key for key in SPECS if key not in kafka_keys() and not key.startswith("horolog.")]
    first_name = "max.message.time.difference.ms"  # of a bound that Kafka renamed before its release
    of_authorizers = ["super.users", "allow.everyone.if.no.acl.found"]  # Kafka's, read by them and not by the broker
    assert sorted(strangers) == sorted([first_name, *of_authorizers])


def test_every_sentence_is_one():
    for key, spec in SPECS.items():
        assert spec.sentence[0].isupper(), key
        assert spec.sentence.endswith("."), key


def test_flags_win_over_environment_over_file(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("log.segment.bytes=1000\nlog.roll.hours=1\nnum.partitions=5\n")
    environ = {"KAFKA_LOG_SEGMENT_BYTES": "2000", "KAFKA_LOG_ROLL_HOURS": "2"}
    settings, warnings = load(file, environ, {"log.segment.bytes": "3000"})
    assert (settings.log_segment_bytes, settings.log_roll_hours, settings.num_partitions) == (3000, 2, 5)
    assert warnings == []
    assert settings.source("num.partitions") is ConfigSource.STATIC_BROKER
    assert settings.source("log.roll.ms") is ConfigSource.DEFAULT


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("KAFKA_LOG_SEGMENT_BYTES", "log.segment.bytes"),
        ("KAFKA_ZOOKEEPER_CLIENT__CNXN", "zookeeper.client_cnxn"),
        ("KAFKA_LISTENER_NAME_IN___SIDE_SSL", "listener.name.in-side.ssl"),
        ("KAFKA_CFG_LOG_SEGMENT_BYTES", "log.segment.bytes"),
        ("KAFKA_CREATE_TOPICS", "horolog.create.topics"),
    ],
)
def test_variables_are_named_as_in_kafkas_image(variable, key):
    assert key_of_variable(variable) == key


@pytest.mark.parametrize("source", ["file", "variable", "flag"])
@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("principal.builder.class", "requires authentication, which this release does not support"),
        ("super.users", "it has no effect without an authorizer; set authorizer.class.name"),
    ],
)
def test_protection_that_nobody_gives_ends_the_start_wherever_it_is_asked_for(tmp_path, source, key, said):
    file = tmp_path / "server.properties"
    file.write_text(f"{key}=User:a\n" if source == "file" else "")
    variables = {"KAFKA_" + key.upper().replace(".", "_"): "User:a"} if source == "variable" else {}
    with pytest.raises(SettingsError) as refused:
        load(file, variables, {key: "User:a"} if source == "flag" else {})
    assert key in str(refused.value)
    assert said in str(refused.value)


def test_what_kafka_knows_and_we_do_not_use_is_one_warning(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("zookeeper.connect=z:2181\nlistener.name.inside.num.network.threads=5\n")
    environ = {"KAFKA_PROCESS_ROLES": "broker,controller"}
    _, warnings = load(file, environ, {"num.io.threads": "8"})
    assert len(warnings) == 1
    for key in ("zookeeper.connect", "listener.name.inside.num.network.threads", "process.roles", "num.io.threads"):
        assert key in warnings[0]


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("file.delete.delay.ms", "log.segment.delete.delay.ms"),
        ("log.unclean.leader.election.enable", None),
        ("retention.ms", "log.retention.ms"),
    ],
)
def test_a_setting_of_topics_is_a_warning(key, near):
    settings, warnings = load(None, {}, {key: "60000"})
    assert not settings.is_set(key)
    assert len(warnings) == 1
    assert f"{key} is a topic setting and has no effect here" in warnings[0]
    assert near is None or near in warnings[0]


@pytest.mark.parametrize("key", ["flush.messages", "log.flush.messages", "flush.ms"])
def test_a_setting_of_topics_that_asks_for_durability_ends_the_start(key):
    with pytest.raises(SettingsError, match=f"{key}.*is not a known setting"):
        load(None, {}, {key: "1"})


def test_settings_that_only_kafka_uses_may_change_while_running_and_are_shown():
    key = "sasl.kerberos.min.time.before.relogin"
    settings = Settings()
    assert settings.describe([key]) == []
    changed = settings.with_dynamic({"num.io.threads": "9"}, {key: "60001"})
    assert [(one.name, one.value, one.source) for one in changed.describe([key, "num.io.threads"])] == [
        (key, "60001", ConfigSource.DYNAMIC_BROKER),
        ("num.io.threads", "9", ConfigSource.DYNAMIC_DEFAULT_BROKER),
    ]
    assert key in [one.name for one in changed.describe()]
    for refused in ("principal.builder.class", "ssl.engine.factory.class", "process.roles", "no.such.key"):
        with pytest.raises(SettingsError):
            settings.with_dynamic({}, {refused: "x"})


def test_no_unused_key_is_in_the_table():
    assert not unused_keys.NAMES & SPECS.keys()
    assert set(kafka_keys()) >= unused_keys.NAMES


def test_variables_of_scripts_and_platforms_are_not_settings():
    environ = {"KAFKA_HOME": "/opt", "KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_SERVICE_HOST": "10.0.0.1", "PATH": "/bin"}
    environ |= {
        "KAFKA_LOG4J_LOGGERS": "x",
        "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
        "KAFKA_CLUSTER_ID": "x",
        "KAFKA_JMX_PORT": "1",
        "KAFKA_PORT": "tcp://10.0.0.1:9092",
    }
    assert load(None, environ, {}) == (Settings(layers=Layers()), [])


def test_a_variable_far_from_every_key_is_passed_over_with_a_warning():
    _, warnings = load(None, {"KAFKA_BOOTSTRAP_SERVERS": "host:9092", "KAFKA_TOPIC": "t"}, {})
    assert len(warnings) == 1
    assert "KAFKA_BOOTSTRAP_SERVERS" in warnings[0]
    assert "KAFKA_TOPIC" in warnings[0]


@pytest.mark.parametrize(
    ("environ", "flags", "said"),
    [
        ({}, {"log.segmnt.bytes": "1"}, ["log.segmnt.bytes", "did you mean log.segment.bytes?"]),
        ({"KAFKA_LOG_SEGMENT_BYTE": "1"}, {}, ["log.segment.byte", "did you mean log.segment.bytes?"]),
        ({}, {"zookeper.connect": "1"}, ["did you mean zookeeper.connect?"]),
        ({}, {"log.segment.bytes": "big"}, ["log.segment.bytes", "'big'", "from 14 to 2147483647"]),
        ({"KAFKA_COMPRESSION_TYPE": "brotli"}, {}, ["compression.type", "'brotli'", "one of uncompressed, zstd"]),
        ({}, {"log.message.format.version": "5.0"}, ["log.message.format.version", "from 0.8.0 to 4.3"]),
        ({}, {"broker.id": "1", "node.id": "2"}, ["broker.id", "must equal node.id=2"]),
    ],
)
def test_what_stops_the_start(environ, flags, said):
    with pytest.raises(SettingsError) as refused:
        load(None, environ, flags)
    for words in said:
        assert words in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"missing\.properties"):
        load(tmp_path / "missing.properties", {}, {})


@pytest.mark.parametrize(
    ("flags", "number"),
    [
        ({}, 1),
        ({"broker.id": "7"}, 7),
        ({"node.id": "8"}, 8),
        ({"broker.id": "-1"}, 1),
        ({"broker.id": "-1", "node.id": "3"}, 3),
    ],
)
def test_broker_id_and_node_id_are_one(flags, number):
    settings, _ = load(None, {}, flags)
    assert (settings.node_id, settings.broker_id) == (number, number)


@pytest.mark.parametrize(
    ("flags", "folders"),
    [
        ({}, ["data"]),
        ({"log.dir": "a"}, ["a"]),
        ({"log.dir": "a", "log.dirs": "b"}, ["b"]),
        ({"log.dirs": "b, a,/c/d ,"}, ["b", "a", "/c/d"]),
        ({"log.dir": "a,b"}, ["a", "b"]),
    ],
)
def test_data_folders(flags, folders):
    assert list(map(str, load(None, {}, flags)[0].data_folders)) == folders


@pytest.mark.parametrize("text", ["a,b,a", "a,a/", ","])
def test_data_folders_are_named_once(text):
    with pytest.raises(SettingsError, match=r"log\.dirs="):
        _ = load(None, {}, {"log.dirs": text})[0].data_folders


def test_changes_while_running_win_over_the_start_and_can_be_taken_back():
    settings, _ = load(None, {}, {"log.segment.bytes": "1000"})
    changed = settings.with_dynamic(
        cluster={"log.segment.bytes": "2000", "message.max.bytes": "5"}, broker={"log.segment.bytes": "3000"}
    )
    assert (changed.log_segment_bytes, changed.message_max_bytes) == (3000, 5)
    assert changed.source("log.segment.bytes") is ConfigSource.DYNAMIC_BROKER
    assert changed.source("message.max.bytes") is ConfigSource.DYNAMIC_DEFAULT_BROKER
    assert settings.log_segment_bytes == 1000
    assert changed.with_dynamic({}, {}) == settings


def test_only_dynamic_keys_may_change_while_running():
    with pytest.raises(SettingsError, match=r"node\.id='2': is read only at the start"):
        Settings().with_dynamic({}, {"node.id": "2"})
    with pytest.raises(SettingsError, match="not a known setting"):
        Settings().with_dynamic({"no.such.key": "2"}, {})


def test_describe_lists_every_candidate_in_its_rank():
    settings = load(None, {}, {"log.segment.bytes": "1000"})[0].with_dynamic({}, {"log.segment.bytes": "3000"})
    (entry,) = settings.describe(["log.segment.bytes", "no.such.key"])
    assert (entry.value, entry.source, entry.type, entry.read_only) == (
        "3000",
        ConfigSource.DYNAMIC_BROKER,
        ConfigType.INT,
        False,
    )
    assert [(s.value, s.source.name) for s in entry.synonyms] == [
        ("3000", "DYNAMIC_BROKER"),
        ("1000", "STATIC_BROKER"),
        ("1073741824", "DEFAULT"),
    ]
    assert [one.name for one in settings.describe()] == list(SPECS)


def test_explain_says_what_it_is_and_why():
    said = load(None, {}, {"log.roll.hours": "3"})[0].explain("log.roll.hours")
    for words in ("log.roll.hours = 3", "default: 168", "static broker", SPECS["log.roll.hours"].sentence):
        assert words in said


@pytest.mark.parametrize(
    ("text", "magic"),
    [
        ("0.8.2", 0),
        ("0.9.0", 0),
        ("0.10.0-IV1", 1),
        ("0.10.2", 1),
        ("0.11.0", 2),
        ("1.0", 2),
        ("3.9-IV0", 2),
        ("4.3", 2),
    ]
    + [
        (text, None)
        for text in ("", "3", "0.7.0", "0.12", "5.0", "x.y", "3.9-IV", "3.9-IVx", "3.-9", "1.2.3.4.5", "3.9 ")
    ],
)
def test_record_format_of_a_release(text, magic):
    assert magic_of_release(text) == magic


COUNTED_IMPORT = """
import dataclasses, enum, re, pathlib, sys
events = 0
def count(*_):
    global events
    events += 1
sys.setprofile(count)
import horolog.broker.config.settings
sys.setprofile(None)
print(events)
"""
"""Prints how often a function was called or returned during the import: a measure that a busy machine does not change."""


def test_settings_are_quick_to_import():
    folder = settings_module.__file__.rsplit("/", 4)[0]
    assert int(subprocess.check_output([sys.executable, "-c", COUNTED_IMPORT], cwd=folder)) < 150_000, "about 90,000"


@pytest.mark.parametrize("levels", ["", "broker.network:DEBUG", "broker:INFO, protocol.wire:ERROR"])
def test_levels_of_loggers_are_given_by_name(levels):
    settings, _ = load(None, {}, {"horolog.log.levels": levels})
    assert len(settings.horolog_log_levels) == levels.count(":")


@pytest.mark.parametrize("levels", ["DEBUG", ":DEBUG", "broker:LOUD", "broker:INFO,network"])
def test_a_level_without_a_name_or_of_no_kind_is_refused(levels):
    with pytest.raises(SettingsError, match="NAME:LEVEL"):
        load(None, {}, {"horolog.log.levels": levels})


def test_settings_show_what_was_given():
    settings, _ = load(None, {}, {"node.id": "7", "log.segment.bytes": "5000"})
    assert repr(settings) == "Settings(node.id=7, log.segment.bytes=5000)"
    assert repr(load(None, {}, {})[0]) == "Settings()"


@pytest.mark.parametrize(
    ("release", "magic"),
    [("0.8.2", 0), ("0.9.0", 0), ("0.10.1-IV2", 1), ("0.11.0", 2), ("1.0", 2), ("3.0-IV1", 2), ("4.1", 2)],
)
def test_each_release_wrote_one_format(release, magic):
    assert magic_of_release(release) == magic


@pytest.mark.parametrize("text", ["", "x", "0.7", "0.12", "5.0", "3", "a.b"])
def test_what_was_never_a_release_wrote_none(text):
    assert magic_of_release(text) is None


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("horolog.audit.topic", "__consumer_offsets"),
        ("horolog.audit.topic", "no name"),
        ("horolog.audit.events", "login,gossip"),
        ("horolog.audit.rate.max", "0"),
    ],
)
def test_an_audit_that_cannot_be_is_refused(key, text):
    with pytest.raises(SettingsError, match=key):
        load(None, {}, {key: text})
