"""How Sphinx builds the site: `make docs-site`. Pages come from `tools.docs_site`, which lays them out."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

project = "horolog"
copyright = "the horolog authors, Apache-2.0"
release = (ROOT / "horolog/version.py").read_text("utf-8").partition('__version__ = "')[2].partition('"')[0]
html_title = f"horolog {release}"
html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = True
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}

extensions = ["myst_parser", "sphinx_copybutton"]
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_here_doc_delimiter = "END"
highlight_language = "text"

myst_heading_anchors = 4
myst_enable_extensions: list[str] = []
suppress_warnings = [
    "myst.header",  # pages may begin below the first level
    "misc.highlighting_failure",  # output with `...` is no valid JSON
]
