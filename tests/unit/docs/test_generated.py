"""The parts of docs that code writes are as it writes them now, and leave no API out."""

import pytest

from horolog.broker.handlers import HANDLERS
from horolog.protocol.apis import API, ApiKey
from tests.support.style import PROJECT
from tools import api_table
from tools.kafka_apis import VERSIONS
from tools.pages import PARTS, filled


@pytest.mark.parametrize("name", PARTS)
def test_a_page_is_as_code_writes_it(name):
    page = (PROJECT / "docs" / name).read_text("utf-8")
    assert filled(name, page) == page, "make docs writes it anew"


def test_every_api_is_served_or_has_a_reason():
    served = {API[key].name for key in HANDLERS}
    reasoned = [name for names in api_table.NOT_SERVED.values() for name in names]
    assert len(set(reasoned)) == len(reasoned)
    assert not served & set(reasoned)
    assert {key.api_name for key in ApiKey} == served | set(reasoned)


def test_kafkas_newest_versions_are_served():
    refused = {name for names in api_table.NOT_SERVED.values() for name in names}
    newest = {key: handler.max_version for key, handler in HANDLERS.items()}
    kafkas = {key: int(versions.split("-")[-1]) for key, versions in VERSIONS.items() if key.api_name not in refused}
    assert newest == kafkas


def test_a_handler_says_what_it_does_not_do():
    def with_its_own():
        """Does something. Not done: half of it, and
        more.
        """

    def without():
        """Does it all."""

    with_its_own.__doc__ += ""
    assert api_table.not_done(with_its_own) == "half of it, and more"
    assert api_table.not_done(without) == ""
    shown = api_table.served().splitlines()
    assert "| Fetch | 1 | 0-18 | 4-18 | fetches by followers (any replica id is refused) |" in shown
    assert len(shown) == len(HANDLERS) + 2
