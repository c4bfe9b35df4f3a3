"""The pages are laid out for the site: every page has a place, links lead to pages, and each diagram has its picture."""

import re

import pytest

from tests.support.style import PROJECT
from tools import docs_site

INDEX = (docs_site.SITE / "index.md").read_text("utf-8")
GROUPS = ("Tutorial", "How to", "Reference", "Explanation", "For contributors")
MOST_BYTES = 150_000


def test_links_between_folders_become_links_between_pages():
    text = (
        "[a](docs/cli.md#times) [b](../CHANGELOG.md) [c](SECURITY.md) [d](https://a.b/docs/x.md) [e](#here) [f](faq.md)"
    )
    assert docs_site.laid_out(text) == (
        "[a](cli.md#times) [b](changelog.md) [c](security-policy.md) [d](https://a.b/docs/x.md) [e](#here) [f](faq.md)"
    )


def test_a_diagram_becomes_its_picture():
    text = "before\n\n```mermaid\nflowchart TD\n    a --> b\n```\n\nafter\n"
    name = docs_site.name_of("flowchart TD\n    a --> b\n")
    assert docs_site.laid_out(text) == f"before\n\n![A diagram](images/diagrams/{name})\n\nafter\n"
    assert docs_site.name_of("flowchart LR\n") != name


def test_every_diagram_has_a_picture_and_every_picture_a_diagram():
    drawn = {path.name for path in docs_site.DIAGRAMS.glob("*.svg")}
    assert drawn == {docs_site.name_of(one) for one in docs_site.diagrams()}, "CONTRIBUTING.md says how to draw them"
    assert all(path.stat().st_size <= MOST_BYTES for path in docs_site.DIAGRAMS.glob("*.svg"))


@pytest.mark.parametrize("path", sorted(docs_site.DIAGRAMS.glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_loads_nothing_from_elsewhere(path):
    text = path.read_text("utf-8")
    assert re.findall(r"(?:href|src)=\"(?!#)|@import|url\((?!#)|<script", text) == []


def test_every_page_has_one_place_in_the_navigation():
    names = re.findall(r"^([a-z-]+)$", "".join(re.findall(r"```\{toctree\}\n(.*?)```", INDEX, re.DOTALL)), re.MULTILINE)
    pages = [docs_site.MOVED.get(path.name, path.name).removesuffix(".md") for path in docs_site.pages()]
    assert sorted(names) == sorted(pages)
    assert tuple(re.findall(r"^:caption: (.+)$", INDEX, re.MULTILINE)) == GROUPS


def test_the_folder_has_all_that_pages_show(tmp_path):
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "earlier.md").touch()
    docs_site.lay_out(tmp_path / "pages")
    found = {path.relative_to(tmp_path / "pages").as_posix() for path in (tmp_path / "pages").rglob("*.*")}
    assert {"index.md", "changelog.md", "cli.md", "images/console-moment.png"} < found
    assert "earlier.md" not in found
    for page in (tmp_path / "pages").glob("*.md"):
        shown = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text("utf-8"))
        assert [one for one in shown if one not in found] == []


def test_the_lock_has_what_makes_the_site():
    lock = (PROJECT / "requirements" / "site.lock").read_text("utf-8")
    assert all(
        re.search(rf"^{name}==", lock, re.MULTILINE) for name in ("furo", "myst-parser", "sphinx", "sphinx-copybutton")
    )
