"""Explorables in a browser: by keyboard and touch they end where Python would.

Each case operates a figure and compares all that it shows with the figure that Python
draws for that state. The pages hold nothing else, so that no build is needed for them.
"""

import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from aiayn import causal_mask, sinusoidal_positional_encoding
from aiayn_book import explorables
from aiayn_book.colours import PAGE
from tests.site.conftest import chromium, missing

WORDS = {"title": "A point", "description": "What it shows."}
GENERATOR = torch.Generator().manual_seed(17)
Q, K, V = (torch.randn(n, d, generator=GENERATOR) for n, d in [(3, 4), (3, 4), (3, 2)])
EXPONENTIALS = torch.tensor([[2.0, 1, 5], [1, 2, 1], [2, 1, 5]])
SOURCE, READ = ["The", "dog", "sleeps", "."], ["<s>", "Der", "Hund", "schläft"]
VOCABULARY = ["<s>", "</s>", "Der", "Hund", "schläft", "."]
TO_SOURCE = torch.randn(2, 3, 4, 4, generator=GENERATOR).softmax(-1)
TO_READ = torch.randn(2, 3, 4, 4, generator=GENERATOR)
TO_READ = TO_READ.masked_fill(~causal_mask(4), -math.inf).softmax(-1)
CHANCES = torch.randn(4, 6, generator=GENERATOR).softmax(-1)


def walk(**start):
    names = ["cat", "drinks", "milk"]
    return explorables.matrix_walk(Q, K, V, names, names, **WORDS, **start)


def lookup(**start):
    entries = {"cat": (30, (10, 0)), "drinks": (260, (0, 0)), "milk": (120, (0, 10))}
    return explorables.soft_lookup(entries, **WORDS, **start)


def softmax(**start):
    return explorables.softmax_scale([1.4, 0.9, 0.1, -1.6], **WORDS, **start)


def positions(**start):
    table = sinusoidal_positional_encoding(171, 8)
    return explorables.positions_explorer(table, **WORDS, **start)


def masks(**start):
    rules = {
        "causal": causal_mask(3),
        "no padding": torch.tensor([True, True, False]).expand(3, 3),
        "not itself": ~torch.eye(3, dtype=torch.bool),
    }
    names = ["<s>", "der", "<pad>"]
    scores = EXPONENTIALS.log()
    return explorables.mask_rules(scores, rules, names, names, **WORDS, **start)


def stepper(layers=slice(None), heads=slice(None), **start):
    return explorables.decoder_stepper(
        SOURCE,
        READ,
        [*READ[1:], "</s>"],
        to_source=TO_SOURCE[layers, heads],
        to_read=TO_READ[layers, heads],
        probabilities=CHANCES,
        vocabulary=VOCABULARY,
        **WORDS,
        **start,
    )


LEFT, RIGHT, UP, DOWN = (
    Keys.ARROW_LEFT,
    Keys.ARROW_RIGHT,
    Keys.ARROW_UP,
    Keys.ARROW_DOWN,
)
SCORE = "[data-part=score][tabindex='0']"
CONTEXT = "[data-part=context][tabindex='0']"
CASES = {
    "walk": (
        walk(start=(1, 0)),
        [(SCORE, [RIGHT, DOWN]), (CONTEXT, [DOWN])],
        walk(start=(2, 1)),
    ),
    "walk, at the edge": (walk(start=(0, 2)), [(SCORE, [UP])], walk(start=(0, 2))),
    "walk, to the ends": (
        walk(start=(1, 1)),
        [(SCORE, [Keys.END, Keys.HOME])],
        walk(start=(1, 0)),
    ),
    "look-up": (
        lookup(angle=60, length=2.0),
        [("[name=angle]", [RIGHT] * 3), ("[name=length]", [LEFT] * 2)],
        lookup(angle=75, length=1.5),
    ),
    "look-up, at the ends": (
        lookup(angle=60, length=2.0),
        [("[name=angle]", [Keys.END]), ("[name=length]", [Keys.END])],
        lookup(angle=360, length=4.0),
    ),
    "softmax": (
        softmax(power=6, exponent=0),
        [("[name=power]", [LEFT] * 3), ("[name=exponent]", [RIGHT] * 5)],
        softmax(power=3, exponent=0.5),
    ),
    "softmax, at the ends": (
        softmax(power=6, exponent=0),
        [("[name=power]", [Keys.END]), ("[name=exponent]", [Keys.END])],
        softmax(power=10, exponent=1),
    ),
    "positions": (
        positions(position=5, ahead=7),
        [("[name=position]", [RIGHT] * 4), ("[name=ahead]", [LEFT] * 2)],
        positions(position=9, ahead=5),
    ),
    "positions, at the ends": (
        positions(position=5, ahead=7),
        [("[name=position]", [Keys.END]), ("[name=ahead]", [Keys.HOME])],
        positions(position=150, ahead=0),
    ),
    "masks": (
        masks(on=["causal"], start=(2, 0)),
        [
            ("label:nth-of-type(2) input", [Keys.SPACE]),
            ("button[tabindex='0']", [RIGHT]),
        ],
        masks(on=["causal", "no padding"], start=(2, 1)),
    ),
    "masks, a row that sees nothing": (
        masks(start=(0, 0)),
        [
            ("label:nth-of-type(1) input", [Keys.SPACE]),
            ("label:nth-of-type(3) input", [Keys.SPACE]),
        ],
        masks(on=["causal", "not itself"], start=(0, 0)),
    ),
    "stepper": (
        stepper(step=1),
        [("[name=next]", [Keys.ENTER, Keys.ENTER]), ("[name=back]", [Keys.SPACE])],
        stepper(step=2),
    ),
    "stepper, by slider": (
        stepper(step=1),
        [("[name=step]", [Keys.END])],
        stepper(step=4),
    ),
    "stepper, one head": (
        stepper(step=3),
        [("[name=layer]", [UP]), ("[name=head]", [DOWN, DOWN])],
        stepper(slice(1), slice(1, 2), step=3),
    ),
}

# All that is seen of a figure, its options apart: what it says, what it measures.
SEEN = """
const parts = "th, td, td *, output, b, [role=status]";
const drawn = ".clock p, .clock line, .stripes span, .panels :is(line, circle)";
const found = [...arguments[0].querySelectorAll(`${parts}, ${drawn}`)];
const words = e => [e.tagName, e.getAttribute("class") || "", e.textContent.trim(),
  e.getAttribute("aria-pressed") || ""].join(" ");
const styles = ["--share", "--at"], ends = ["x2", "y2", "r"];
const measures = e => [
  ...styles.map(name => Number(e.style.getPropertyValue(name) || 0)),
  ...ends.map(name => Number(e.getAttribute(name) || 0)),
];
return [found.map(words), found.flatMap(measures)];
"""


def page(*figures, theme="light", expected=""):
    """A page that holds figures and nothing else, in one of the book's themes."""
    colours = f"background: {getattr(PAGE, theme)}; color: {INKS[theme]}"
    outputs = "".join(figure._repr_html_() for figure in figures)
    return (
        f'<!DOCTYPE html><html lang="en" data-theme="{theme}"><head>'
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        '<link rel="icon" href="data:,"><title>Figures</title></head>'
        f'<body style="{colours}">{outputs}'
        f'<div id="expected" hidden>{expected}</div></body></html>'
    )


NUMBERS = itertools.count()
INKS = {"light": "#22262e", "dark": "#d8dce2"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a test puts its page."""
    return tmp_path_factory.mktemp("figures")


@pytest.fixture(scope="module")
def window(folder):
    """A browser that reaches these pages only."""
    if chromium.find_browser() is None:
        missing(chromium.MISSING)
    with chromium.browsing(folder) as opened:
        yield opened


@pytest.fixture
def show(window, folder):
    """Write a page and open it."""

    def shown(*figures, width=1280, **options):
        name = f"{next(NUMBERS)}.html"  # a name of its own: the browser keeps pages
        (folder / name).write_text(page(*figures, **options), "utf-8")
        window.look(width, options.get("theme", "light"))
        window.console()
        window.open(name)
        return window

    return shown


def seen(window, selector):
    """What the first figure that fits shows."""
    found = window.driver.find_element(By.CSS_SELECTOR, selector)
    return window.run(SEEN, found)


@pytest.mark.parametrize("case", CASES)
def test_the_keyboard_leads_to_what_python_draws(show, case):
    """Whatever is operated, the page shows the numbers that Python computes."""
    figure, presses, expected = CASES[case]
    window = show(figure, expected=expected.body)
    before = seen(window, ".aiayn-explorable")
    for selector, keys in presses:
        window.run("document.querySelector(arguments[0]).focus()", selector)
        for key in keys:
            window.driver.switch_to.active_element.send_keys(key)
    words, measures = seen(window, ".aiayn-explorable")
    wanted, lengths = seen(window, "#expected")
    assert words == wanted
    assert measures == pytest.approx(lengths, abs=1e-4)  # Python writes four digits
    assert (wanted != before[0]) == ("edge" not in case)
    assert window.console() == []
    assert [
        u for u in window.requests() if not u.startswith((window.address, "data:"))
    ] == []


def test_a_weight_lights_the_row_of_scores_that_made_it(show):
    """Also for what cannot be a figure's first state."""
    window = show(walk(start=(1, 0)))
    window.run(f'document.querySelector("{CONTEXT}").focus()')
    window.driver.switch_to.active_element.send_keys(LEFT)
    lit = window.run(
        "return [...document.querySelectorAll('[data-part=score].lit')]"
        ".map(cell => cell.dataset.row + cell.dataset.column)"
    )
    assert lit == ["10", "11", "12"]
    weight = (Q @ K.T / 2).double().softmax(-1)[1, 2]
    says = window.run(
        "return document.querySelectorAll('[role=status]')[1].textContent"
    )
    assert says.startswith("milk’s share for drinks.")
    assert says.endswith(f"= {weight:.3f}")


def test_one_tab_stop_a_table(show):
    """The arrow keys do the rest: nobody tabs through nine numbers."""
    window = show(walk(start=(0, 0)), masks(start=(0, 0)))
    for selector in (SCORE, "[data-kind=masks] button[tabindex='0']"):
        window.run("document.querySelector(arguments[0]).focus()", selector)
        window.driver.switch_to.active_element.send_keys(RIGHT)
    stops = window.run(
        "return [...document.querySelectorAll('table')]"
        ".map(t => t.querySelectorAll('button[tabindex=\"0\"]').length)"
    )
    assert stops == [1, 1, 1]


@pytest.mark.parametrize("modifier", ["altKey", "ctrlKey", "metaKey"])
def test_the_browsers_own_keys_stay_the_browsers(show, modifier):
    """Alt and an arrow lead back a page, Control and Home to its top: not a table."""
    window = show(walk(start=(1, 1)))
    press = (
        "return document.querySelector(arguments[0]).dispatchEvent(new KeyboardEvent("
        "'keydown', {key: arguments[1], [arguments[2]]: true,"
        " bubbles: true, cancelable: true}))"
    )
    before = seen(window, ".aiayn-explorable")
    for key in ("ArrowLeft", "Home"):
        assert window.run(press, SCORE, key, modifier), "the table took the key"
    assert seen(window, ".aiayn-explorable") == before
    assert not window.run(press, SCORE, "ArrowLeft", ""), "alone, it is the table's"


def test_a_tap_chooses_in_its_own_figure_only(show):
    """Two of the same on one page do not meddle with each other."""
    window = show(walk(start=(0, 0)), walk(start=(0, 0)), width=390)
    x, y = window.run(
        "const cell = document.querySelectorAll('[data-part=score]')[9 + 4];"
        "cell.scrollIntoView({block: 'center'});"
        "const box = cell.getBoundingClientRect();"
        "return [box.x + box.width / 2, box.y + box.height / 2];"
    )
    window.command("Emulation.setTouchEmulationEnabled", enabled=True)
    finger = {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]}
    window.command("Input.dispatchTouchEvent", **finger)
    window.command("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    chosen = (
        "return [...document.querySelectorAll('[data-part=score][aria-pressed=true]')]"
        ".map(cell => cell.dataset.row + cell.dataset.column)"
    )
    window.wait(lambda: window.run(chosen) != ["00", "00"])
    assert window.run(chosen) == ["00", "11"]
    window.command("Emulation.setTouchEmulationEnabled", enabled=False)


def test_each_of_two_is_brought_to_life_once(show):
    """Every output carries the script; a press still counts once."""
    window = show(stepper(step=1), stepper(step=1))
    window.run("document.querySelector('[name=next]').click()")
    steps = "return [...document.querySelectorAll('output')].map(o => o.value)"
    assert window.run(steps) == ["2", "1"]


def test_the_last_step_keeps_the_focus(show):
    """Who steps on by keyboard is not thrown out at the end, and not beyond it."""
    window = show(stepper(step=3))
    window.run("document.querySelector('[name=next]').focus()")
    for _ in range(3):
        window.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert window.run("return document.activeElement.name") == "next"
    assert window.run("return document.activeElement.ariaDisabled") == "true"
    assert seen(window, ".aiayn-explorable")[0][0] == "OUTPUT  4 "


@pytest.mark.parametrize(
    ("figure", "name", "words"),
    [
        (softmax(power=6), "power", "6: dₖ = 64"),
        (stepper(step=2), "step", "2: writes Hund"),
    ],
    ids=["softmax", "stepper"],
)
def test_a_slider_says_what_its_number_means_before_it_is_moved(
    show, figure, name, words
):
    """To a screen reader, which would else say the number alone."""
    window = show(figure)
    slider = f"document.querySelector('[name={name}]')"
    assert window.run(f"return {slider}.getAttribute('aria-valuetext')") == words


def test_print_shows_the_figure_and_no_controls(show):
    """On paper nothing can be moved."""
    window = show(softmax())
    window.command("Emulation.setEmulatedMedia", media="print")
    displayed = "return [...document.querySelectorAll('.aiayn-controls, table')].map("
    displayed += "part => getComputedStyle(part).display)"
    assert window.run(displayed) == ["none", "table"]
    window.command("Emulation.setEmulatedMedia", media="")


def test_without_its_script_a_figure_promises_nothing(show):
    """Controls are hidden, numbers and words are there, and no number is a button."""
    window = show(softmax(), expected="")
    window.run(
        "document.body.innerHTML = arguments[0]",  # scripts put in so do not run
        "".join(figure._repr_html_() for figure in (stepper(step=2), walk(), masks())),
    )
    shown = "return [...document.querySelectorAll('.aiayn-controls')].map("
    shown += "part => getComputedStyle(part).display)"
    assert window.run(shown) == ["none", "none"]
    assert "Writes: Hund" in window.run("return document.body.innerText")
    buttons = window.run(
        """
        return [...document.querySelectorAll("td button:not(.lit)")].map(button => {
          const {pointerEvents, borderTopColor} = getComputedStyle(button);
          return [pointerEvents, borderTopColor, button.tabIndex];
        });
        """
    )
    assert len(buttons) == 9 + (6 + 6) + 9  # scores, weights and context, masked
    assert {tuple(found) for found in buttons} == {("none", "rgba(0, 0, 0, 0)", -1)}


def test_a_figure_that_cannot_be_brought_to_life_promises_nothing(show):
    """Its numbers are no JSON; the next of its kind lives all the same."""
    page = stepper(step=2)._repr_html_()
    broken = page.replace('data-numbers="{', 'data-numbers="')
    window = show(SimpleNamespace(_repr_html_=lambda: broken), stepper(step=1))
    shown = "return [...document.querySelectorAll('.aiayn-controls')].map("
    shown += "part => getComputedStyle(part).display)"
    assert window.run(shown) == ["none", "flex"]
    assert "SyntaxError" in window.console()[0]


FIGURES = (
    walk(start=(1, 0)),
    lookup(),
    softmax(),
    positions(position=5, ahead=7),
    masks(on=["causal"], start=(1, 1)),
    stepper(step=3),
)

# The least contrast between letters and what lies under them, and whose it is.
CONTRAST = """
const canvas = document.createElement("canvas");
const pen = canvas.getContext("2d", {willReadFrequently: true});
const pixel = layers => {
  pen.clearRect(0, 0, 1, 1);
  for (const colour of layers) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
  return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const light = rgb => rgb.map(v => v / 255)
  .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const found = [];
for (const e of document.querySelectorAll(".aiayn-explorable *")) {
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  const {color, visibility} = getComputedStyle(e);
  const apart = e.matches(".aiayn-unseen, option, [aria-disabled=true]");
  if (!own || apart || !e.offsetParent || visibility === "hidden") continue;
  const under = [];
  for (let a = e; a; a = a.parentElement) {
    under.unshift(getComputedStyle(a).backgroundColor);
  }
  const lights = [pixel(under), pixel([...under, color])].map(light);
  const [dark, bright] = lights.sort((a, b) => a - b);
  found.push([(bright + 0.05) / (dark + 0.05), e.className + ": " + e.textContent]);
}
return found.sort((a, b) => a[0] - b[0])[0];
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_letters_have_contrast(show, theme):
    """At least 4.5 to 1, on tinted numbers too."""
    window = show(*FIGURES, theme=theme)
    contrast, whose = window.run(CONTRAST)
    assert contrast >= 4.5, whose


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_figures_fit_and_can_be_hit(show, width):
    """No sideways scrolling, and no control smaller than 24 pixels."""
    window = show(*FIGURES, width=width)
    over = "const p = document.documentElement; return p.scrollWidth - p.clientWidth"
    assert window.run(over) == 0
    small = window.run(
        "return [...document.querySelectorAll('button, select, label, [type=range]')]"
        ".map(e => [e.getBoundingClientRect(), e.outerHTML])"
        ".filter(([box]) => Math.min(box.width, box.height) < 24).map(([, e]) => e)"
    )
    assert small == []


def test_every_kind_is_in_the_book_and_comes_to_life(browser, site):
    """In the chapters' own pages, with the site's scripts and styles around."""
    kinds = set()
    for path in sorted(site.glob("notebooks/*.html")):
        if 'class="aiayn-explorable"' not in path.read_text(encoding="utf-8"):
            continue
        browser.look(390, "dark")
        browser.open(path.relative_to(site).as_posix())
        found = browser.run(
            "return [...document.querySelectorAll('.aiayn-explorable')]"
            ".map(f => [f.dataset.kind, 'live' in f.dataset, f.clientWidth])"
        )
        assert all(live and width > 300 for _, live, width in found), path.name
        kinds |= {kind for kind, *_ in found}
    assert kinds == {"lookup", "walk", "softmax", "positions", "masks", "stepper"}
