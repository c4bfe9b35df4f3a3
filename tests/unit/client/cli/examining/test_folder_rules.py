"""Rules of a folder that no broker runs on are read and changed, and what stands in the way is said."""

import pytest

from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.log.storage import RealStorage
from horolog.broker.security import users
from horolog.broker.security.acls import rule_of
from horolog.broker.security.sasl import scram_keys
from horolog.client.cli.examining import folder_rules
from horolog.commands.errors import CommandError, NotFoundError
from tests.support.guarded_broker import acl

RULE = rule_of(acl("alice", "READ", name="t"))


def put(*folders):
    folder_rules.change([str(one) for one in folders], lambda _: RulesChanged((RULE,)), {})


def test_a_rule_is_there_before_the_first_start(tmp_path):
    put(tmp_path / "new/")
    assert list(folder_rules.read([str(tmp_path / "new")]).values()) == [RULE]
    folder_rules.change([str(tmp_path / "new")], lambda _: RulesChanged(removed=frozenset({RULE.id})), {})
    assert folder_rules.read([str(tmp_path / "new")]) == {}


def test_several_folders_are_one_cluster(tmp_path):
    put(tmp_path / "a", tmp_path / "b")
    assert len(folder_rules.read([str(tmp_path / "b"), str(tmp_path / "a")])) == 1


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(NotFoundError, match=r"is not a folder; give the folder that log.dirs names"):
        folder_rules.read([str(tmp_path / "none")])


def test_a_folder_in_use_is_not_changed(tmp_path):
    put(tmp_path)
    lock = RealStorage().lock(str(tmp_path / ".lock"))
    try:
        with pytest.raises(CommandError, match=r"a broker runs on .*; make the change while it runs: -b HOST:PORT"):
            put(tmp_path)
    finally:
        lock.release()


def test_a_folder_of_kafka_is_taken_over_first(tmp_path):
    (tmp_path / "t-0").mkdir()
    with pytest.raises(CommandError, match="take it over first: horolog adopt DIR"):
        put(tmp_path)


def test_a_damaged_file_is_not_written_over(tmp_path):
    put(tmp_path)
    file = tmp_path / "horolog-cluster"
    file.write_bytes(file.read_bytes().replace(b"alice", b"alicf"))
    before = file.read_bytes()
    with pytest.raises(CommandError, match="horolog-cluster is damaged"):
        put(tmp_path)
    assert file.read_bytes() == before


def test_a_file_of_a_newer_version_is_left_alone(tmp_path):
    from horolog.broker.on_record.checked_lines import encode_line

    (tmp_path / "horolog-cluster").write_text(encode_line({"version": 99}))
    with pytest.raises(CommandError, match=str(tmp_path)):
        put(tmp_path)
    with pytest.raises(CommandError, match=str(tmp_path)):
        folder_rules.read([str(tmp_path)])


def test_secrets_of_users_are_read_with_the_secret_that_hides_them(tmp_path):
    kind = scram_keys.KINDS["SCRAM-SHA-256"]
    user = users.rule_of(users.UserId(kind, "ann"), scram_keys.of_password(kind, "pw", 4096))
    hidden = {folder_rules.ENVIRONMENT: "a long secret"}
    folder_rules.change([str(tmp_path)], lambda _: RulesChanged((user,)), hidden)
    assert list(folder_rules.read_users([str(tmp_path)], hidden).values()) == [user]
    assert list(folder_rules.read([str(tmp_path)]).values()) != [user]
    with pytest.raises(CommandError, match=f"set {folder_rules.ENVIRONMENT} to the broker's secret"):
        folder_rules.read_users([str(tmp_path)], {folder_rules.ENVIRONMENT: "another secret"})
