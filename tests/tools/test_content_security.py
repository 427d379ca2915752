"""What a page's policy allows: what stands in the page, and nothing more."""

import hashlib
from base64 import b64encode

import pytest

from aiayn_site import content_security

PAGE = """<!DOCTYPE html>
<html><head>
<meta charset="utf-8">
<script src="site.js"></script>
<script>let a = 1;</script>
<script type="text/x-thebe-config">{"data": true}</script>
<script type="module">import "./b.js";</script>
</head><body>
<form onsubmit="return false"><button onclick='go(&quot;x&quot;)'>Go</button></form>
<p title="a onclick=none">no onclick="here" in a text</p>
<script>document.write(`<a onclick="print()">Print</a>`)</script>
</body></html>"""


def hashed(code):
    digest = b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def sources(page, name="script-src"):
    rules = dict(
        rule.split(" ", 1) for rule in content_security.policy(page).split("; ")
    )
    return rules[name].split(" ")


def test_scripts_that_stand_in_the_page_are_allowed_by_their_hash():
    allowed = sources(PAGE)
    assert hashed("let a = 1;") in allowed
    assert hashed('import "./b.js";') in allowed
    assert hashed('{"data": true}') not in allowed, "data does not run"
    assert allowed[0] == "'self'"
    assert not {"'unsafe-inline'", "'unsafe-eval'", "*", "data:"} & set(allowed)


def test_handlers_are_allowed_by_their_hash_those_that_scripts_write_too():
    allowed = sources(PAGE)
    assert "'unsafe-hashes'" in allowed
    for code in ("return false", 'go("x")', "print()"):
        assert hashed(code) in allowed
    assert len(allowed) == 2 + 3 + 3


def test_a_page_without_handlers_allows_none():
    assert sources("<head></head>") == ["'self'"]


@pytest.mark.parametrize("page", [PAGE, content_security.with_policy(PAGE)])
def test_the_policy_stands_after_the_encoding_and_once(page):
    """Browsers look for the encoding in the first 1,024 bytes of a page."""
    done = content_security.with_policy(page)
    head = done[done.index("<head>") :]
    begin = '<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy"'
    assert head.startswith(begin)
    assert done.count("Content-Security-Policy") == 1


def test_a_page_without_an_encoding_has_its_policy_first():
    done = content_security.with_policy("<head><title>x</title></head>")
    assert done.startswith('<head>\n<meta http-equiv="Content-Security-Policy"')


def test_nothing_comes_from_elsewhere():
    assert sources(PAGE, "default-src") == ["'none'"]
    for name in ("connect-src", "font-src", "form-action", "worker-src"):
        assert sources(PAGE, name) == ["'self'"]
