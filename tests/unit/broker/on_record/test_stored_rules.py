"""A rule as a line of the cluster file: read as it was written, and its content is shown to nobody."""

import pytest

from horolog.broker.on_record.checked_lines import decode_line
from horolog.broker.on_record.stored_rules import StoredRule, read_rule


def test_a_rule_is_read_as_it_was_written():
    rule = StoredRule("user", "SCRAM-SHA-256/bob", {"iterations": 4096})
    again = read_rule(decode_line(rule.line.rstrip().encode()), rule.line)
    assert (again, again.line, again.id) == (rule, rule.line, ("user", "SCRAM-SHA-256/bob"))


def test_a_rule_does_not_show_its_content():
    assert "secret" not in repr(StoredRule("user", "bob", {"password": "secret"}))


@pytest.mark.parametrize(
    "line", [{"rule": "wish", "key": "a", "content": {}}, {"rule": "acl", "key": "a", "content": []}, {"rule": "acl"}]
)
def test_other_lines_are_no_rules(line):
    with pytest.raises((ValueError, KeyError)):
        read_rule(line)
