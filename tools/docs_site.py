"""`python -m tools.docs_site FOLDER`: lay out the pages for Sphinx, which makes the site of them (`make docs-site`).

The pages stay as they are read in the repository. Here links between folders become links between pages, and a diagram becomes
the picture that was drawn of it before (`--draw`), so that the site loads no script of megabytes.
"""

import argparse
import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SITE = DOCS / "site"
DIAGRAMS = DOCS / "images" / "diagrams"
MOVED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security-policy.md"}
"""Pages from the top of the repository."""
_MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)#\s]+)")


def name_of(diagram: str) -> str:
    """The file that has the picture of a diagram: another one as soon as it changes."""
    return f"{hashlib.sha256(diagram.encode()).hexdigest()[:12]}.svg"


def diagrams() -> Iterator[str]:
    for page in pages():
        yield from _MERMAID.findall(page.read_text("utf-8"))


def pages() -> list[Path]:
    return sorted(DOCS.glob("*.md")) + [ROOT / name for name in MOVED]


def laid_out(text: str) -> str:
    """A page as the site has it."""
    text = _MERMAID.sub(lambda found: f"![A diagram](images/diagrams/{name_of(found[1])})", text)
    return _LINK.sub(lambda found: _page_of(found[1]), text)


def _page_of(target: str) -> str:
    """Where a link leads on the site: all pages lie in one folder."""
    if ":" in target:
        return target
    name = target.removeprefix("../").removeprefix("docs/")
    return MOVED.get(name, name)


def lay_out(folder: Path) -> None:
    """Fill the folder that Sphinx reads."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS / "images", folder / "images")
    shutil.copyfile(SITE / "index.md", folder / "index.md")
    for page in pages():
        (folder / MOVED.get(page.name, page.name)).write_text(laid_out(page.read_text("utf-8")), "utf-8")


def draw(script: Path, chromium: str) -> None:
    """Draw the diagrams that have no picture yet, and remove pictures of earlier ones; `script` is mermaid.min.js."""
    from playwright.sync_api import sync_playwright

    wanted = {name_of(one): one for one in diagrams()}
    for path in DIAGRAMS.glob("*.svg"):
        if path.name not in wanted:
            path.unlink()
    settings = "{startOnLoad: false, theme: 'neutral', htmlLabels: false, flowchart: {htmlLabels: false}, deterministicIds: true}"
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]).new_page()
        page.set_content("<html><body></body></html>")
        page.add_script_tag(path=script)
        page.evaluate(f"mermaid.initialize({settings})")
        for name, text in wanted.items():
            drawn = page.evaluate("text => mermaid.render('diagram', text).then(drawn => drawn.svg)", text)
            (DIAGRAMS / name).write_text(drawn, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build" / "docs-pages")
    parser.add_argument(
        "--draw", type=Path, metavar="MERMAID.MIN.JS", help="draw the diagrams, with this script in Chromium"
    )
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    arguments = parser.parse_args()
    if arguments.draw:
        draw(arguments.draw.resolve(), arguments.chromium)
    lay_out(arguments.folder)


if __name__ == "__main__":
    main()
