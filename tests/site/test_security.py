"""The policy of each page: kept by the page, in force, also when opened as a file."""

import re

import pytest

# One of each kind: charts with sliders, formulas only, prose, a page with a tool.
KINDS = ["notebooks/04-scaling.html", "book/notation.html", "book/index.html"]
KINDS += ["book/live-model.html"]


def test_every_page_has_a_strict_policy_before_anything_else(site, page):
    text = (site / page).read_text(encoding="utf-8")
    meta = '<meta http-equiv="Content-Security-Policy" content="([^"]+)">'
    found = re.search(rf"<head\b[^>]*>\s*(?:<meta charset=[^>]*>\s*)?{meta}", text)
    assert found, f"{page} has no policy at the start of its head"
    assert "default-src 'none'" in found[1]
    scripts = re.search(r"script-src ([^;]+)", found[1])[1]
    assert not re.search(r"unsafe-inline|unsafe-eval|\*|https?:|data:", scripts)


@pytest.mark.parametrize("page_of_a_kind", KINDS)
def test_a_page_opened_as_a_file_keeps_to_its_policy(browser, site, page_of_a_kind):
    """Charts and formulas are drawn there too, and no rule is broken."""
    browser.look(1280, "light")
    browser.console()
    browser.driver.get((site.resolve() / page_of_a_kind).as_uri())
    browser.settle()
    assert [said for said in browser.console() if "Content Security" in said] == []
    raw = browser.run(
        "return [...document.querySelectorAll('.math')]"
        ".filter(formula => !formula.querySelector('mjx-container')).length"
    )
    assert raw == 0


def test_the_policy_is_in_force(browser):
    """What somebody brings into a page neither runs nor asks for anything."""
    browser.look(1280, "light")
    browser.open(KINDS[0])
    browser.run(
        "window.ran = []; window.refusals = [];"
        "document.addEventListener('securitypolicyviolation',"
        "  event => window.refusals.push(event.effectiveDirective));"
        "const script = document.createElement('script');"
        "script.textContent = 'window.ran.push(1)';"
        "document.body.append(script);"
        "const box = document.createElement('div');"
        'box.innerHTML = \'<img src="x:" onerror="window.ran.push(2)">'
        '<img src="https://elsewhere.example/pixel.png">\';'
        "document.body.append(box);"
        # Later, for what the browser's driver runs itself is bound by no policy.
        "setTimeout(() => {"
        "  try { new Function('window.ran.push(3)')(); } catch { window.refused = 1; }"
        "  window.done = true;"
        "});"
    )
    browser.wait(lambda: browser.run("return window.done"))
    assert browser.run("return window.ran") == []
    assert browser.run("return window.refused") == 1
    expected = {"script-src-elem", "script-src-attr", "img-src", "script-src"}
    browser.wait(lambda: set(browser.run("return window.refusals")) == expected)
    browser.console()  # it says so too; the next test begins anew


def test_no_page_leaves_a_cookie(browser):
    for page in KINDS:
        browser.open(page)
        assert browser.run("return document.cookie") == ""
