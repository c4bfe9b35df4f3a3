"""The part kept of a controller's knowledge comes back as it was, or is told to be damaged."""

from horolog.broker.adoption import adopted_file
from horolog.broker.adoption.kraft_log import MetadataLog
from horolog.broker.adoption.kraft_state import KraftState, replay
from horolog.protocol.messages import metadata_records as records
from horolog.protocol.records.record import Record
from tests.support.kraft import config, frame, topic

ID = bytes(range(16))


def state() -> KraftState:
    messages = [
        *topic("a", ID, 2, {"retention.ms": "-1"}),
        config("", "log.retention.ms", "5", 4),
        records.UserScramCredentialRecord(
            name="ü", mechanism=2, salt=b"\0\xff", stored_key=b"a", server_key=b"b", iterations=9
        ),
        records.AccessControlEntryRecord(
            id=ID,
            resource_type=2,
            resource_name="r",
            pattern_type=3,
            principal="p",
            host="h",
            operation=4,
            permission_type=3,
        ),
        records.ClientQuotaRecord(entity=[records.EntityData(entity_type="ip")], key="rate", value=0.5),
    ]
    return replay(MetadataLog(end_offset=7, records=[Record(n, 0, 0, None, frame(m)) for n, m in enumerate(messages)]))


def test_everything_comes_back():
    before = state()
    after = adopted_file.parse(adopted_file.encode(before, "the log"))
    assert after.damages == []
    assert after.written == "the log"
    assert after.state.end_offset == 7
    assert (after.state.scram, after.state.acls, after.state.quotas) == (before.scram, before.acls, before.quotas)
    assert after.state.broker_configs == before.broker_configs
    assert after.state.topics["a"].configs == {"retention.ms": "-1"}
    assert after.state.topics["a"].partition_count == 2


def test_any_byte_that_flips_is_told_and_costs_its_line_only():
    data = adopted_file.encode(state(), "the log")
    for position in range(0, len(data), 7):
        hit = bytearray(data)
        hit[position] ^= 0x04
        after = adopted_file.parse(bytes(hit))
        assert after.damages, position
        kept = len(after.state.topics) + len(after.state.scram) + len(after.state.acls) + len(after.state.quotas)
        assert kept >= 2
