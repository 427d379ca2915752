"""The directive ``{terms}``: the glossary, drawn from ``book/data/glossary.yml``.

Each entry is a term of Sphinx's own glossary, so that any page can link to it.
"""

from pathlib import Path

import yaml
from docutils import nodes
from sphinx.application import Sphinx

from aiayn_site.api import ApiDirective

DATA = Path(__file__).resolve().parents[2] / "data" / "glossary.yml"


def terms() -> dict[str, dict[str, str]]:
    """Each term with its text, and its symbol, code and place where it has them."""
    return yaml.safe_load(DATA.read_text(encoding="utf-8"))


class Terms(ApiDirective):
    """All terms in the order of the alphabet."""

    def run(self) -> list[nodes.Node]:
        drawn = (self._entry(name, entry) for name, entry in terms().items())
        lines = "\n\n".join(drawn)
        return self.markdown(f"```{{glossary}}\n:sorted:\n\n{lines}\n```")

    def _entry(self, name: str, entry: dict[str, str]) -> str:
        """Its names, a line each; the text; and below it where to look."""
        chapter = entry["where"].partition("#")[0]
        path, _, heading = entry["where"].partition("#")
        link = f"[{self.title(chapter)}](../notebooks/{path}.ipynb#{heading})"
        code = f"`{entry['code']}`" if "code" in entry else ""
        parts = " · ".join(filter(None, [entry.get("symbol"), code, link]))
        names = "\n".join(name.split(", "))
        return f"{names}\n  {entry['text']}\n\n  {{.api-where}}\n  {parts}"


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("terms", Terms)
