"""Settings of groups are named once, in order, with words that a value may be."""

from horolog.client.values.group_settings import GROUP_SETTINGS


def test_each_begins_with_the_kind_of_group_that_it_is_of():
    assert list(GROUP_SETTINGS) == sorted(GROUP_SETTINGS)
    assert {key.partition(".")[0] for key in GROUP_SETTINGS} == {"consumer", "share", "streams"}
    assert all(word for words in GROUP_SETTINGS.values() for word in words)
