"""Output that reads alike on the site, in Colab, in JupyterLab and as plain text.

Each of these pages has its own way to say that it is dark; the style below knows them,
and follows the system's setting on a page that says nothing. It asks no other host for
anything and touches nothing outside its own boxes.
"""

import html
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any
from urllib.parse import urlsplit

from aiayn_book.colours import css_properties

_DARK_PAGES = (
    "html[data-theme=dark] .aiayn",  # this book's site
    "body[data-jp-theme-light=false] .aiayn",  # JupyterLab
    "html[theme=dark] .aiayn",  # Colab
    "body.vscode-dark .aiayn",  # Visual Studio Code
)
_SILENT_PAGE = (
    "html:not([data-theme], [theme]) body:not([data-jp-theme-light], [class*=vscode])"
)

STYLE = f"""<style>
.aiayn {{ {css_properties("light")} color: inherit; max-width: 46rem; }}
@media (prefers-color-scheme: dark) {{
  {_SILENT_PAGE} .aiayn {{ {css_properties("dark")} }} }}
{", ".join(_DARK_PAGES)} {{ {css_properties("dark")} }}
.cell_output .text_html:has(> .aiayn) {{
  background: transparent !important; color: inherit !important;
  padding: 0 !important; }}
.aiayn-box {{ border: 1px solid var(--aiayn-neutral); border-left-width: .3rem;
  border-radius: .3rem; padding: .6rem .9rem; margin: .5rem 0; line-height: 1.5; }}
.aiayn-box p {{ margin: .25rem 0; }}
</style>"""


def escape(text: str) -> str:
    """Text as HTML, in attributes too."""
    return html.escape(text, quote=True)


@cache
def site_address() -> str:
    """Where the book's site stands, with a slash at its end.

    It follows from the repository's address, which the installed package knows; a copy
    that was never installed has the site's pages beside the notebooks.
    """
    try:
        urls = metadata("aiayn").get_all("Project-URL") or []
    except PackageNotFoundError:
        urls = []
    named = dict(url.split(", ", 1) for url in urls)
    return pages_address(named["Repository"]) if "Repository" in named else "../"


def pages_address(repository: str) -> str:
    """Where GitHub shows the site of a repository, with a slash at its end."""
    owner, _, name = urlsplit(repository).path.strip("/").partition("/")
    host = f"{owner.lower()}.github.io"
    below = f"{name}/" if name.lower() != host else ""  # else it is the host's own site
    return f"https://{host}/{below}"


def show(thing: Any) -> None:
    """Display in a notebook, print anywhere else."""
    try:
        from IPython.display import display
    except ImportError:
        print(thing)
    else:
        display(thing)
