"""The numbers of the words of access lists."""

import pytest

from horolog.base.acl_types import OPERATIONS_OF, Operation, PatternType, Permission, ResourceType


def test_a_number_without_a_word_is_unknown():
    for words in (Operation, PatternType, Permission, ResourceType):
        assert words(99) is words.UNKNOWN
        assert words(-1) is words.UNKNOWN
        assert [int(one) for one in words] == list(range(len(words)))
    with pytest.raises(ValueError, match="x"):
        Operation("x")


def test_each_resource_has_its_operations():
    assert Operation.ALL not in {one for every in OPERATIONS_OF.values() for one in every}
    assert Operation.IDEMPOTENT_WRITE in OPERATIONS_OF[ResourceType.CLUSTER]
