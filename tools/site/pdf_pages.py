"""Pages as Chromium prints them: those of the site, and some of our own."""

import base64
import io

from pypdf import PdfReader

from tools.site.browser import Browser

A4 = {"paperWidth": 8.27, "paperHeight": 11.69}  # inches, as Chromium wants them
MARGINS = {"marginTop": 0.8, "marginBottom": 0.9, "marginLeft": 0.8, "marginRight": 0.8}
NO_MARGINS = dict.fromkeys(MARGINS, 0)

# Charts are drawn for the window: the paper's text, and the page's own margins.
WINDOW = 680  # CSS pixels: 6.67 inches, and 20 pixels on either side

# Folded code that only draws a chart or sets up stays away; everything else opens.
# Anchors that other pages link to must be linked to here, for Chromium records the
# place of those alone.
PREPARE = """
for (const fold of document.querySelectorAll(".bd-article details")) {
  const words = fold.querySelector("summary")?.textContent ?? "";
  fold.open = true;
  fold.hidden = /Show the (set-up|code)/.test(words);
  const prompt = fold.querySelector("summary .collapsed")?.textContent;
  if (prompt) {
    const name = prompt.replace(/^Show /, "");
    fold.querySelector("summary").textContent = name[0].toUpperCase() + name.slice(1);
  }
}
for (const id of arguments[0]) {
  if (!document.getElementById(id)) continue;
  const link = document.createElement("a");
  link.href = "#" + id;
  link.textContent = ".";
  link.style.cssText = "font-size: 1px; color: transparent; text-decoration: none";
  document.querySelector(".bd-article").append(link);
}
return document.querySelector(".bd-article h1").firstChild.textContent;
"""

STYLE = """
@page { size: A4; margin: 0 }
body { margin: 0; font-family: "Book Sans", Arial, sans-serif }
section { position: relative; width: 210mm; height: 296.9mm; break-after: page }
section p { position: absolute; bottom: 9mm; left: 20mm; right: 20mm; margin: 0;
  font-size: 8.5pt; color: #59606b; display: flex; justify-content: space-between }
main { margin: 24mm 20mm }
@page contents { margin: 20mm }
h1 { font-size: 34pt; margin: 60mm 0 6mm } h2 { font-size: 20pt; margin: 0 0 8mm }
.lede { font-size: 13pt; color: #59606b }
ol { list-style: none; margin: 0 0 4mm; padding: 0; font-size: 11pt; line-height: 1.7 }
li { display: flex; gap: 2mm } li span { flex: 1; border-bottom: 1px dotted #a3abb6 }
a { color: inherit; text-decoration: none }
h3 { font-size: 11pt; margin: 3mm 0 1mm; break-after: avoid }
.contents { page: contents; break-before: page; margin: 0 }
"""


def print_page(browser: Browser, path: str, linked: set[str]) -> tuple[str, PdfReader]:
    """A page's title, and the page as Chromium prints it."""
    browser.look(WINDOW, "light")
    browser.open(f"{path}.html")
    title = browser.run(PREPARE, sorted(linked - {""}))
    browser.settle()
    return title.strip(), to_pdf(browser, MARGINS, generateDocumentOutline=True)


def to_pdf(browser: Browser, margins: dict[str, float], **options) -> PdfReader:
    """What the browser shows, printed."""
    made = browser.command(
        "Page.printToPDF", printBackground=True, **A4, **margins, **options
    )
    return PdfReader(io.BytesIO(base64.b64decode(made["data"])))


def from_html(browser: Browser, body: str) -> PdfReader:
    """Pages of our own: the title, the contents, the page numbers."""
    browser.open("search.html")  # any page, for the address of its fonts
    head = f'<link rel="stylesheet" href="_static/fonts.css"><style>{STYLE}</style>'
    browser.run("document.head.innerHTML = arguments[0]", head)
    browser.run("document.body.innerHTML = arguments[0]", body)
    browser.settle()
    return to_pdf(browser, NO_MARGINS, preferCSSPageSize=True)
