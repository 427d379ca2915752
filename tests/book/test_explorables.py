"""Explorables: the figure that Python writes, before any script has run."""

import base64
import fnmatch
import html
import io
import json
import math
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import pytest
import torch

from aiayn import (
    causal_mask,
    scaled_dot_product_attention,
    sinusoidal_positional_encoding,
)
from aiayn.errors import InputError
from aiayn_book import explorables
from aiayn_book.explorables.base import number, short

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "src" / "aiayn_book" / "explorables"
WORDS = {"title": "A point", "description": "What it shows."}


def walk(**changes):
    """Two queries on three keys, a token of which would harm a careless page."""
    generator = torch.Generator().manual_seed(3)
    Q, K, V = (
        torch.randn(n, d, generator=generator) for n, d in [(2, 4), (3, 4), (3, 2)]
    )
    names = ["a", "b"], ["</script>", "<b>", "&"]
    given = {"query": Q, "key": K, "value": V, **WORDS, **changes}
    return explorables.matrix_walk(query_tokens=names[0], key_tokens=names[1], **given)


def lookup(**changes):
    entries = {"</script>": (30, (10, 0)), "<b>": (260, (0, 0)), "&": (120, (0, 10))}
    return explorables.soft_lookup(entries, **WORDS, **changes)


def softmax(scores=(1.4, 0.5, -1.0), **changes):
    return explorables.softmax_scale(list(scores), **WORDS, **changes)


def positions(table=None, **changes):
    table = sinusoidal_positional_encoding(60, 8) if table is None else table
    return explorables.positions_explorer(table, **WORDS, **changes)


def masks(**changes):
    rules = {"causal": causal_mask(3), "not itself": ~torch.eye(3, dtype=torch.bool)}
    scores = torch.tensor([[2.0, 1, 5], [1, 3, 1], [2, 1, 5]]).log()
    given = {"scores": scores, "rules": rules, **WORDS, **changes}
    return explorables.mask_rules(
        query_tokens=["x", "y", "z"], key_tokens=["x", "y", "z"], **given
    )


def stepper(**changes):
    generator = torch.Generator().manual_seed(11)
    own = torch.randn(2, 2, 3, 3, generator=generator)
    own = own.masked_fill(~causal_mask(3), -math.inf).softmax(-1)
    given = {
        "to_source": torch.randn(2, 2, 3, 2, generator=generator).softmax(-1),
        "to_read": own,
        "probabilities": torch.randn(3, 6, generator=generator).softmax(-1),
        "vocabulary": ["<s>", "</s>", "ja", "nein", "doch", "so"],
        "read_tokens": ["<s>", "ja", "so"],
        "written_tokens": ["ja", "so", "</s>"],
        **WORDS,
        **changes,
    }
    return explorables.decoder_stepper(["yes", "</s>"], **given)


ALL = {f.__name__: f for f in (walk, lookup, softmax, positions, masks, stepper)}


@pytest.fixture(params=ALL)
def page(request):
    """The HTML of each explorable in turn."""
    return ALL[request.param]()._repr_html_()


def text(body):
    """What a reader sees of some HTML."""
    return html.unescape(re.sub(r"<[^>]+>", "", body))


def says(figure):
    """The lines below a figure."""
    lines = re.findall(r'role="status"[^>]*>(.*?)</p>', figure.body, re.DOTALL)
    return [text(line) for line in lines]


def test_nothing_is_asked_of_another_host_or_run_from_text(page):
    """No address, no import, no handler in an attribute: a strict page allows it."""
    code = re.sub(r'data-numbers="[^"]*"', "", page)
    forbidden = r"https?:|url\(|@import|import\(|\beval\b|Function\(|fetch\(|\son\w+="
    assert re.findall(forbidden, code) == []


def test_nothing_moves_by_itself(page):
    """Who asked for reduced motion has it: there is none."""
    assert not re.search(r"transition|animation|setInterval|requestAnimation", page)


def test_tokens_and_numbers_cannot_end_the_script(page):
    """Signs of HTML in tokens arrive as text."""
    assert page.count("<script>") == page.count("</script>") == 1
    (numbers,) = re.findall(r'data-numbers="([^"]*)"', page)
    assert json.loads(html.unescape(numbers))


def test_a_text_alternative_is_attached(page):
    """The description is there for screen readers, under the figure's own id."""
    (name,) = re.findall(r'<figure [^>]*aria-describedby="([^"]+)"', page)
    assert f'id="{name}">What it shows.</p>' in page


@pytest.mark.parametrize("make", [lookup, softmax, positions, stepper])
def test_a_slider_is_named_by_its_label_alone(make):
    """The number behind it is for the eye: a slider says its value itself."""
    labels = re.findall(r'<label class="aiayn-slider">(.*?)</label>', make().body)
    assert labels
    for label in labels:
        heard = re.sub(r'<output aria-hidden="true">[^<]*</output>', "", label)
        assert re.fullmatch(r"<span>[^<\d]+</span><input [^>]+>", heard)


def test_no_browser_puts_a_control_back_where_a_reader_left_it(page):
    """The figure begins anew each time, and would show something else."""
    controls = re.findall(r"<(?:input|select)[^>]*>", page)
    assert all('autocomplete="off"' in control for control in controls)


def test_the_script_does_not_depend_on_the_numbers():
    """So that one hash in a content security policy allows them all."""
    scripts = {
        re.search(r"<script>.*</script>", softmax(s)._repr_html_(), re.DOTALL)[0]
        for s in ([1, 2], [3, 4, 5])
    }
    assert len(scripts) == 1


def test_same_numbers_same_page(page, request):
    """The page depends on nothing but its input."""
    again = ALL[request.node.callspec.params["page"]]()
    assert again._repr_html_() == page


def test_plain_text():
    """Where there is no HTML, title and description stand."""
    assert repr(softmax()) == "[Explorable: A point. What it shows.]"


def test_scripts_and_styles_are_in_the_package():
    """What pip installs includes every file of this folder."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["aiayn_book"]
    names = [
        f"explorables/{path.name}"
        for path in FOLDER.iterdir()
        if path.is_file() and path.suffix != ".py"
    ]
    assert len(names) == 14  # base and six more, a script and a style each
    for name in names:
        assert any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


@pytest.mark.parametrize(
    ("value", "long", "stripped"),
    [
        (2, "2.00", "2"),
        (-0.5, "−0.50", "−0.5"),
        (-0.001, "0.00", "0"),
        (0.125, "0.13", "0.13"),
        (-0.125, "−0.13", "−0.13"),
        (10, "10.00", "10"),
    ],
)
def test_numbers(value, long, stripped):
    """A true minus, no minus zero, and no zero lost before the point."""
    assert (number(value), short(value)) == (long, stripped)


def test_walk_shows_the_attention_of_the_library():
    """Scores, weights and context, and each chosen sum ends in its number."""
    figure = walk(start=(1, 2))
    generator = torch.Generator().manual_seed(3)
    Q, K, V = (
        torch.randn(n, d, generator=generator).double()
        for n, d in [(2, 4), (3, 4), (3, 2)]
    )
    context, weights = scaled_dot_product_attention(Q, K, V)
    shown = re.findall(
        r'data-part="(\w+)" data-row="(\d)" data-column="(\d)"[^>]*>([^<]*)<',
        figure.body,
    )
    tables = {
        "query": Q,
        "key": K.T,
        "value": V,
        "score": Q @ K.T / 2,
        "weight": weights,
        "context": context,
    }
    assert len(shown) == sum(table.numel() for table in tables.values())
    for part, i, j, numeral in shown:
        digits = 3 if part == "weight" else 2
        value = float(numeral.replace("−", "-"))
        assert abs(value - tables[part][int(i), int(j)]) <= 0.5 * 10**-digits + 1e-12
    assert figure.numbers["says"].keys() == {"score", "weight", "context"}
    for part, rows in figure.numbers["says"].items():
        for i, row in enumerate(rows):
            for j, sentence in enumerate(row):
                total = text(sentence).split()[-1]
                value = tables[part][i, j]
                same = number(value, 3), short(value)
                assert total in same
    assert "b asks &." in says(figure)[0]


@pytest.mark.parametrize("angle", [0, 60, 200, 315])
def test_a_look_up_is_the_attention_of_the_library(angle):
    """Scores, weights and answer of the keys and the query that are drawn."""
    arrows = [(30, math.sqrt(2)), (260, math.sqrt(2)), (120, math.sqrt(2)), (angle, 3)]
    ends = [
        [size * math.cos(math.radians(a)), size * math.sin(math.radians(a))]
        for a, size in arrows
    ]
    *keys, query = torch.tensor(ends, dtype=torch.float64)
    values = torch.tensor([[10.0, 0], [0, 0], [0, 10]], dtype=torch.float64)
    answer, weights = scaled_dot_product_attention(
        query[None], torch.stack(keys), values
    )
    figure = lookup(angle=angle, length=3.0)
    shown = re.findall(r"<td>(−?[\d.]+)</td><td>([\d.]+)</td>", figure.body)
    scores = torch.stack(keys) @ query / math.sqrt(2)
    assert shown == [
        (number(score), number(weight, 3))
        for score, weight in zip(scores, weights[0], strict=True)
    ]
    x, y = answer[0]
    assert says(figure) == [f"The answer is the point ({number(x)}, {number(y)})."]


def test_softmax_says_what_torch_says():
    """The largest weight and the Jacobian's norm, at any width and divisor."""
    scores = torch.tensor([1.4, 0.5, -1.0], dtype=torch.float64)
    for power, exponent in [(6, 0.0), (3, 0.5), (10, 1.0)]:
        divided = scores * 2 ** (power / 2) / 2 ** (power * exponent)
        jacobian = torch.autograd.functional.jacobian(
            lambda s: s.softmax(dim=0), divided
        )
        (line,) = says(softmax(power=power, exponent=exponent))
        assert f"Largest weight {number(divided.softmax(0).max(), 3)};" in line
        assert f"Jacobian {number(jacobian.norm(), 3)};" in line
        assert f"dₖ = {2**power}, divided by {short(2 ** (power * exponent))}." in line


def test_positions_show_the_table():
    """Hands, angles, dot product, and each pixel of the stripes."""
    table = sinusoidal_positional_encoding(60, 8).double()
    figure = positions(position=5, ahead=7)
    tips = re.findall(r'class="tip">([^<]*)<', figure.body)
    assert tips == [
        f"{number(table[5, i])}, {number(table[5, i + 1])}" for i in (0, 2, 4, 6)
    ]
    turns = [float(t) for t in re.findall(r'class="turn">([\d.]+)°', figure.body)]
    assert len(turns) == 4
    for i, turn in enumerate(turns):
        assert abs(turn - math.degrees(7 * 10000 ** (-2 * i / 8)) % 360) <= 0.06
    assert f"PE(5) · PE(12) = {number(table[5] @ table[12])}." in says(figure)[0]
    (image,) = re.findall(r"base64,([^\"]+)", figure.body)
    pixels = matplotlib.image.imread(io.BytesIO(base64.b64decode(image)))
    assert pixels.shape == (8, 60, 4)
    strength = torch.tensor(pixels[..., 3])
    assert (strength - table.T.abs()).abs().max() <= 0.5 / 255 + 1e-6
    assert len({tuple(p) for p in pixels[..., :3][table.T.numpy() > 0.01]}) == 1


def test_masks_leave_the_weights_of_the_library():
    """With every set of rules; a row that may attend to nothing gets zeros."""
    scores = torch.tensor([[2.0, 1, 5], [1, 3, 1], [2, 1, 5]]).log().double()
    for on in ([], ["causal"], ["not itself"], ["causal", "not itself"]):
        may = torch.ones(3, 3, dtype=torch.bool)
        may = may & causal_mask(3) if "causal" in on else may
        may = may & ~torch.eye(3, dtype=torch.bool) if "not itself" in on else may
        filled = scores.masked_fill(~may, -math.inf).softmax(-1).nan_to_num(0.0)
        figure = masks(on=on)
        cells = re.findall(r"<button [^>]*>([^<]*)<", figure.body)
        wanted = [
            number(filled[i, j], 3) if may[i, j] else "×"
            for i in range(3)
            for j in range(3)
        ]
        assert cells == wanted
        assert f"Permitted pairs: {may.sum()} of 9." in says(figure)[0]
    assert "forbidden (not itself)" in says(figure)[0]
    assert "gets zeros" in says(figure)[0]


def test_stepper_names_what_is_read_and_written():
    """The step's sentence, its best tokens in order, and rows only up to it."""
    figure = stepper(step=2)
    assert says(figure)[0].startswith("Step 2 of 3. Reads: <s> ja. Writes: so")
    chances = torch.randn(3, 6, generator=torch.Generator().manual_seed(1)).softmax(-1)
    figure = stepper(probabilities=chances, step=2)
    vocabulary = ["<s>", "</s>", "ja", "nein", "doch", "so"]
    best = [vocabulary[t] for t in chances[1].topk(4).indices]
    table = re.search(r'class="chances">.*?</table>', figure.body, re.DOTALL)[0]
    shown = re.findall(r'<th scope="row">([^<]*)<', table)
    assert [html.unescape(word) for word in shown] == best
    rows = re.findall(r"<tr([^>]*)><th scope=\"row\">", figure.body)[4:]
    assert rows == ["", ' class="now"', ' class="later"'] * 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: walk(query=torch.ones(3, 4)), "query has the shape"),
        (lambda: walk(key=torch.ones(3, 5)), "key has the shape"),
        (
            lambda: walk(query=torch.ones(2, 9), key=torch.ones(3, 9)),
            "cannot be read in a page",
        ),
        (lambda: walk(features=["one"]), "features holds 1 names for 4 numbers"),
        (lambda: lookup(angle=62), "sliders go from 0 to 360 in steps of 5"),
        (lambda: lookup(length=5.0), "from 0 to 4 in steps of 0.25"),
        (lambda: walk(start=(2, 0)), r"start is \(2, 0\), but .* 2 rows and 3 columns"),
        (lambda: number(1e21), "too long to be written out"),
        (lambda: softmax([[1.0]]), r"scores has the shape \(1, 1\)"),
        (lambda: softmax(power=11), "power is 11 .* from 0 to 10"),
        (lambda: softmax(exponent=0.25), r"exponent is 0.25, .* in steps of 0.1"),
        (lambda: softmax(exponent=1.1), r"exponent is 1.1, .* from 0 to 1"),
        (lambda: softmax([0.0, math.nan]), "scores holds nan, but only finite"),
        (lambda: positions(torch.ones(40, 3)), "table has 3 columns"),
        (lambda: positions(position=50), "the sliders end at 39 and 20"),
        (lambda: masks(on=["casual"]), "'casual', which is none of the rules"),
        (lambda: masks(scores=torch.ones(3, 2)), "scores has the shape"),
        (lambda: masks(scores=torch.zeros(3, 3).log()), "scores holds -inf"),
        (lambda: masks(start=(0, -1)), r"start is \(0, -1\), but .* 3 rows"),
        (lambda: stepper(step=4), "a step from 1 to 3"),
        (lambda: stepper(read_tokens=["<s>"]), "1 tokens are read and 3 written"),
        (lambda: stepper(to_read=torch.ones(2, 2, 3, 2)), "to_read has the shape"),
        (lambda: walk(title=" "), "title is empty"),
    ],
)
def test_slips_are_sentences(make, words):
    """What was expected, what came, which argument."""
    with pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize("score", [40.0, -40.0])
def test_a_score_is_refused_where_e_to_it_cannot_be_written_out(score):
    Q, K, scores = torch.full((2, 4), score / 2), torch.ones(3, 4), torch.zeros(3, 3)
    assert walk(query=Q, key=K).body.count(">0.333</button>") == 2 * 3
    assert masks(scores=scores + score).body.count(">0.333</button>") == 3 * 3
    for factor in (1.01, 20, 1e30):
        with pytest.raises(InputError, match=r"'a' for '</script>' is .* -40 and 40"):
            walk(query=Q * factor, key=K)
        with pytest.raises(InputError, match=r"'x' for 'z' is .* -40 and 40"):
            masks(scores=scores + torch.tensor([0, 0, score * factor]))


def test_what_a_script_cannot_read_is_never_written():
    """JSON has no NaN, though Python writes one."""
    figure = replace(softmax(), numbers={"scores": [math.nan]})
    with pytest.raises(ValueError, match="not JSON compliant"):
        figure._repr_html_()
