"""Numbers and times have one form each, missing facts say so, and every value is escaped."""

import sys
from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from horolog.console import rendering
from horolog.console.rendering import (
    Times,
    count,
    dollars,
    environment,
    link,
    omitted,
    rate,
    render,
    short,
    size,
    span,
    visible,
    written_out,
)

AT = 1_700_000_000_000


@pytest.mark.parametrize(
    ("form", "value", "said"),
    [
        (count, 1234567, "1,234,567"),
        (count, 0, "0"),
        (omitted, 1, "1 more is not shown"),
        (omitted, 9901, "9,901 more are not shown"),
        (size, 0, "0 B"),
        (size, 1023, "1023 B"),
        (size, 1536, "1.5 KiB"),
        (size, 500 << 20, "500 MiB"),
        (size, 3 << 60, "3072 PiB"),
        (rate, 0, "0/s"),
        (dollars, None, rendering.UNKNOWN),
        (dollars, 0, "$0.00"),
        (dollars, 0.00123, "$0.0012"),
        (dollars, 1234.5, "$1,234.50"),
        (rate, 0.0166, "0.017/s"),
        (rate, 12345.6, "12,346/s"),
        (span, 999, "999ms"),
        (span, 42_538, "42s"),
        (span, 90_061_000, "1d1h"),
        (span, 1_793_928_946_309_000, "56,847 years"),
    ],
)
def test_forms(form, value, said):
    assert form(value) == said


@pytest.mark.parametrize("form", [count, size, rate, span])
def test_a_missing_fact_is_not_zero(form):
    assert "not known" in form(None)
    assert size(-1) == size(None)


@pytest.mark.parametrize(
    ("left_out", "note"), [(0, ""), (1, "1 more is not shown."), (1200, "1,200 more are not shown.")]
)
def test_a_list_that_is_cut_says_by_how_many(left_out, note):
    rest = environment().get_template("rest.html").module.rest
    assert Markup(rest(left_out)).striptags() == note


def test_times_are_shown_in_the_zone_with_the_whole_beside_them():
    times = Times(ZoneInfo("Europe/Berlin"), AT)
    assert times.plain(AT) == "2023-11-14 23:13:20"
    assert times.plain(AT + 5) == "2023-11-14 23:13:20.005"
    assert 'datetime="2023-11-14T23:13:20.000+01:00"' in times.show(AT)
    assert ">1m30s ago<" in times.ago(AT - 90_000)
    assert 'class="future">2s ahead<' in times.ago(AT + 2000)
    assert "not known" in times.show(None) == times.ago(-1)
    assert times.plain(10**18) == f"@{10**18}"
    assert ">about the year 58,817<" in times.show(1_793_928_946_309_000)


def test_links_say_what_they_are_about():
    assert link("/topic", name="a&b", page=None, filter="") == "/topic?name=a%26b"
    assert link("/") == "/"


def test_long_values_are_cut():
    assert short("x" * 10, 5) == "xxxx…"
    assert short("x") == "x"


def test_seconds_that_nobody_knows():
    assert environment().from_string("{{ a|seconds }} {{ b|seconds }}").render(a=90.2, b=None).startswith("1m30s <span")


@given(st.text())
def test_no_value_becomes_markup(value):
    text = render("error_part.html", {"status": 400, "sentence": value})
    inside = text.partition("</b> ")[2].rpartition("</p>")[0]
    assert "<" not in inside
    assert ">" not in inside
    assert '"' not in inside


def test_utc_is_a_zone():
    assert Times(UTC, 0).plain(0) == "1970-01-01 00:00:00"


@pytest.fixture
def templates(tmp_path, monkeypatch):
    """A folder of templates, and how often one of them was compiled since."""
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "one.html").write_text("{{ value|count }}")
    monkeypatch.setattr(rendering, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "templates"


def rendered():
    """The page, and whether its template had to be compiled."""
    compiled = []
    found = environment.__wrapped__()
    compiling = found.compile
    found.compile = lambda *words, **more: (compiled.append(1), compiling(*words, **more))[1]
    return found.get_template("one.html").render(value=1234), bool(compiled)


def test_a_template_is_compiled_once_for_all_processes_and_again_if_it_has_changed(templates):
    assert rendered() == ("1,234", True)
    assert rendered() == ("1,234", False)
    (templates / "one.html").write_text("{{ value|count }}!")
    assert rendered() == ("1,234!", True)
    assert [path.suffix for path in (templates / "__pycache__").iterdir()] == [".pyc"]


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:40], lambda data: data[:-9], lambda data: b"x" * 99]
)
def test_a_compiled_template_that_is_damaged_is_made_anew(templates, damage):
    rendered()
    (kept,) = (templates / "__pycache__").iterdir()
    kept.write_bytes(damage(kept.read_bytes()))
    assert rendered() == ("1,234", True)
    assert rendered() == ("1,234", False)


def test_nothing_is_kept_where_python_keeps_nothing_or_nobody_may_write(templates, monkeypatch):
    (templates / "__pycache__").write_text("no folder")
    assert rendered() == ("1,234", True)
    (templates / "__pycache__").unlink()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rendered() == ("1,234", True)
    assert not (templates / "__pycache__").exists()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\u202ecod.exe", r"a\u202ecod.exe"),
        ("a\x00b", r"a\x00b"),
        ("\u200f\u2066\ufeff\xad", r"\u200f\u2066\ufeff\xad"),
        ("half \ud83d", r"half \ud83d"),
        ("tag \U000e0041", r"tag \U000e0041"),
        ("back\rspace", r"back\x0dspace"),
        ("two\r\nlines\tand a tab", "two\nlines\tand a tab"),
        ("Zoë 日本 👩\u200d👩 ab\u200ccd a\u00a0b", "Zoë 日本 👩\u200d👩 ab\u200ccd a\u00a0b"),
    ],
)
def test_signs_that_would_not_be_seen_are_written_out_and_the_rest_stays(text, shown):
    assert written_out(text) == shown
    found = render("error_part.html", {"status": 0, "sentence": visible(text)})
    assert found.replace('<span class="sign">', "").replace("</span>", "").endswith(f"</b> {shown}</p>")
    found.encode()


def test_text_beside_escapes_is_no_markup():
    assert visible("<b>\x1b</b>") == '&lt;b&gt;<span class="sign">\\x1b</span>&lt;/b&gt;'
