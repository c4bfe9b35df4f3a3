"""What a broker does again and again: which jobs there are, and that those that need the segments keep out of each other's way."""

import pytest

from horolog.broker.base.principal import ANONYMOUS
from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.security.delegation import DelegationToken
from horolog.broker.server.upkeep import LEAST_BACKOFF_MS, _note_tokens_left, _without_expired
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.delegation_tokens import CreateDelegationTokenRequest
from tests.support.guarded_broker import GuardedBroker
from tests.support.memory_broker import MemoryBroker


def jobs(upkeep):
    """The names of the jobs, and how often each comes."""
    return {job._job.__name__: job._interval_s for job in upkeep._jobs}


async def test_every_job_comes_as_often_as_its_setting_says():
    settings = {
        "log_retention_check_interval_ms": 7_000,
        "log_flush_offset_checkpoint_interval_ms": 8_000,
        "offsets_retention_check_interval_ms": 9_000,
        "transaction_abort_timed_out_transaction_cleanup_interval_ms": 10_000,
        "transaction_remove_expired_transaction_cleanup_interval_ms": 11_000,
        "log_cleaner_backoff_ms": 12_000,
        "producer_id_expiration_check_interval_ms": 13_000,
        "delegation_token_expiry_check_interval_ms": 14_000,
    }
    async with MemoryBroker(**settings) as machine:
        found = jobs(machine.broker.upkeep)
    assert found == {
        "apply_retention": 7,
        "_write_checkpoints": 8,
        "expire_offsets": 9,
        "abort_timed_out": 10,
        "forget_expired": 11,
        "compact": 12,
        "_expire_producers": 13,
        "expire_tokens": 14,
        "sync_and_remove": 1,
        "_look_after": 1,
        "_look_for_files": 1,
        "look": 10,
        "finish_prepared": 1,
        "_retry_stopped": 0.25,
    }


async def test_without_a_cleaner_nothing_is_compacted():
    async with MemoryBroker(log_cleaner_enable="false") as machine:
        assert "compact" not in jobs(machine.broker.upkeep)


async def test_compaction_does_not_spin_whatever_its_backoff_says():
    async with MemoryBroker(log_cleaner_backoff_ms=0) as machine:
        assert jobs(machine.broker.upkeep)["compact"] == LEAST_BACKOFF_MS / 1000


async def test_a_broker_that_only_reads_only_looks_for_damage():
    first = MemoryBroker()
    async with first:
        first.topic()
    async with MemoryBroker(first.storage, horolog_read_only="true") as machine:
        assert list(jobs(machine.broker.upkeep)) == ["_look_after"]


@pytest.mark.parametrize("job", ["compact", "_look_after"])
async def test_compaction_and_rescanning_keep_out_of_each_others_segments(job, monkeypatch):
    async with MemoryBroker() as machine:
        upkeep, asked = machine.broker.upkeep, []
        monkeypatch.setattr(upkeep._compactor, "next_pass", lambda *_: asked.append("compact"))
        monkeypatch.setattr(upkeep._rescanner, "next_task", lambda *_: asked.append("_look_after"))
        upkeep._segments_busy = True
        getattr(upkeep, job)()
        assert asked == []
        upkeep._segments_busy = False
        getattr(upkeep, job)()
        assert asked == [job]


async def test_work_in_the_background_that_fails_is_told(caplog):
    async with MemoryBroker() as machine:
        machine.broker.upkeep._in_background(lambda: 1 / 0)
    assert "background work on the disk failed: division by zero" in caplog.text


async def test_it_is_busy_while_a_worker_is_in_the_segments():
    async with MemoryBroker() as machine:
        upkeep = machine.broker.upkeep
        for name in ("_segments_busy", "_scrubbing"):
            assert not upkeep.is_busy
            setattr(upkeep, name, True)
            assert upkeep.is_busy
            setattr(upkeep, name, False)


async def test_delegation_tokens_that_have_expired_are_removed(caplog):
    async with GuardedBroker(delegation_token_expiry_time_ms=1000) as machine:
        request = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
        first = await machine.wire().ask(request, 3)
        machine.clock.advance(1000)
        second = await machine.wire().ask(request, 3)
        machine.broker.upkeep.expire_tokens()
        assert machine.broker.delegation_tokens.by_id.keys() == {first.token_id, second.token_id}, "still valid"
        machine.clock.advance(500)
        machine.broker.upkeep.expire_tokens()
        assert machine.broker.delegation_tokens.by_id.keys() == {second.token_id}
        machine.clock.advance(60_000)
        machine.broker.placement.controller = lambda: 2
        machine.broker.upkeep.expire_tokens()
        assert machine.broker.delegation_tokens.by_id, "another broker is the controller"
    _note_tokens_left(ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full"))
    _note_tokens_left(None)
    assert caplog.text.count("could not be removed: the disk is full") == 1


def test_a_token_that_was_renewed_meanwhile_stays():
    token = DelegationToken("t", ANONYMOUS, ANONYMOUS, (), 0, 10, 100)
    assert _without_expired(10, {token.rule_id: token.rule()}) is None
    assert _without_expired(11, {token.rule_id: token.rule()}) == RulesChanged(removed=frozenset({token.rule_id}))
