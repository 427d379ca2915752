"""Each page says what may run on it: the site's own scripts, and nothing else.

A content security policy in a ``meta`` element, since the hosts that serve books do
not let one set headers. Worth: a script, a handler or an address that somebody brings
into a page (through a package of the build, a chart's data, a text that a reader types
into a page's tool) does not run, is not asked for, and receives nothing. Scripts inside
a page are allowed one by one, by their hash, and text is never evaluated as a program:
Vega interprets its expressions (``ast`` in charts.js). Styles may stand inside a page,
since MathJax and Vega write theirs there. Not worth: a ``meta`` cannot forbid other
sites to frame the book, and who can change the site's files can change the policy.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable
from html import unescape
from pathlib import Path

from sphinx.application import Sphinx

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "worker-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
}
_META = '<meta http-equiv="Content-Security-Policy" content="{}">'
_OLD_META = re.compile(r'\n?<meta http-equiv="Content-Security-Policy"[^>]*>')
# And the encoding: browsers look for it in the first 1,024 bytes; policies are long.
_HEAD = re.compile(r"<head\b[^>]*>(\s*<meta charset=[^>]*>)?", re.IGNORECASE)
_SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>", re.DOTALL | re.IGNORECASE)
_TYPE = re.compile(r"\btype=[\"']?([^\"'\s>]*)")
_TAG = re.compile(r"<[a-z][^<>]*>", re.IGNORECASE)
_HANDLER = re.compile(r"\son[a-z]+=(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
# Types of scripts that run; the others hold data.
RUNS = {"", "text/javascript", "application/javascript", "module"}


def policy(page: str, handlers: Iterable[str] = ()) -> str:
    """The policy of a page, with a hash for each script and handler inside it.

    Args:
        page: Its HTML.
        handlers: Those of the whole site: the search reads other pages in its own.
    """
    scripts, own = inline_code(page)
    allowed = [POLICY["script-src"], *sorted({_hash(script) for script in scripts})]
    if handlers := {*own, *handlers}:  # three, of the theme's buttons
        allowed += ["'unsafe-hashes'", *sorted(map(_hash, handlers))]
    rules = POLICY | {"script-src": " ".join(allowed)}
    return "; ".join(f"{name} {sources}" for name, sources in rules.items())


def inline_code(page: str) -> tuple[list[str], list[str]]:
    """The scripts inside a page, and the handlers in its elements' attributes."""
    scripts = [
        text
        for attributes, text in _SCRIPT.findall(page)
        if " src=" not in attributes and _type(attributes) in RUNS
    ]
    markup = _SCRIPT.sub("", page) + "".join(scripts)  # some scripts write markup
    handlers = [
        unescape(double or single)
        for tag in _TAG.findall(markup)
        for double, single in _HANDLER.findall(tag)
    ]
    return scripts, handlers


def with_policy(page: str, handlers: Iterable[str] = ()) -> str:
    """The page with its policy as the first thing in its head but for the encoding."""
    page = _OLD_META.sub("", page)
    meta = _META.format(policy(page, handlers))
    return _HEAD.sub(lambda head: f"{head[0]}\n{meta}", page, count=1)


def _type(attributes: str) -> str:
    found = _TYPE.search(attributes)
    return found[1].lower() if found else ""


def _hash(code: str) -> str:
    digest = hashlib.sha256(code.encode("utf-8")).digest()
    return f"'sha256-{b64encode(digest).decode()}'"


def protect_pages(app: Sphinx, exception: Exception | None) -> None:
    """Give every finished page its policy."""
    if exception or app.builder.format != "html" or app.tags.has("live"):
        return  # what `make serve` shows loads itself anew by a script of its own
    pages = {
        path: path.read_text(encoding="utf-8")
        for path in Path(app.outdir).rglob("*.html")
        # Below _static are the theme's unused templates.
        if "_static" not in path.relative_to(app.outdir).parts
    }
    handlers = {code for page in pages.values() for code in inline_code(page)[1]}
    for path, page in pages.items():
        protected = with_policy(page, handlers)
        if protected != page:
            path.write_text(protected, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """After every other extension has changed the pages for the last time."""
    app.connect("build-finished", protect_pages, priority=990)
