"""Output that reads alike on the site, in Colab, in JupyterLab and as plain text.

Each of these pages has its own way to say that it is dark; the style below knows all
three, asks no other host for anything and touches nothing outside its own boxes.
"""

import html
from typing import Any

from aiayn_book.colours import css_properties

_DARK_PAGES = (
    "html[data-theme=dark] .aiayn",  # this book's site
    "body[data-jp-theme-light=false] .aiayn",  # JupyterLab
    "html[theme=dark] .aiayn",  # Colab
)

STYLE = f"""<style>
.aiayn {{ {css_properties("light")} color: inherit; max-width: 46rem; }}
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


def show(thing: Any) -> None:
    """Display in a notebook, print anywhere else."""
    try:
        from IPython.display import display
    except ImportError:
        print(thing)
    else:
        display(thing)
