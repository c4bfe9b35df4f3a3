"""The tables of the operations page are written between their marks, and nothing else is touched."""

from horolog.broker.config.settings import SPECS
from tools import operations_tables as page

TEXT = f"before\n{page.DYNAMIC}\nis to go\n{page.END}\nbetween\n{page.METRICS}\nis to go\n{page.END}\nafter\n"


def test_the_table_names_the_settings_that_may_change_while_running():
    table = page.dynamic_settings()
    assert all((f"| `{key}` |" in table) is spec.dynamic for key, spec in SPECS.items())


def test_a_page_is_filled_between_its_marks(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(TEXT)
    page.main(path)
    filled = path.read_text()
    assert "is to go" not in filled
    assert [line for line in ("before", "between", "after") if line in filled.splitlines()] == [
        "before",
        "between",
        "after",
    ]
    assert "horolog_loop_lag_seconds" in filled
    assert page.filled(filled) == filled
