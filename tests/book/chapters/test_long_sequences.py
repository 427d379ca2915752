"""Chapter 22's patterns, linear attention, recall test, drawings and claim."""

import json
import math
from pathlib import Path

import pytest
import torch

from aiayn import scaled_dot_product_attention
from aiayn_book.chapters import long_sequences as chapter
from aiayn_book.svg import Svg
from tests.book.chapters.drawings import check_words, texts

CLAIMS = Path(chapter.__file__).parents[1] / "claims.json"


def random(*shape):
    """Numbers of 64 bits, the same in each test."""
    generator = torch.Generator().manual_seed(22)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def deepest(mask):
    """The layers until the last of the pairs that can meet at all has met."""
    return int(chapter.first_reached(mask).max())


def test_scores_of_nine_words_as_counted_by_hand():
    """All pairs 45, window 24, strided 33, chunks 18; layers to the first word."""
    masks = {name: make(9, 3) for name, make in chapter.PATTERNS.items()}
    assert {name: int(mask.sum()) for name, mask in masks.items()} == {
        "all pairs": 45,
        "window": 24,
        "strided": 33,
        "chunks": 18,
    }
    first = {n: int(chapter.first_reached(m)[-1, 0]) for n, m in masks.items()}
    assert first == {"all pairs": 1, "window": 4, "strided": 2, "chunks": 0}


def test_reach_of_36_words():
    """A window of 6 needs 7 layers, the strided pattern 2; chunks stay in a block."""
    assert deepest(chapter.window(36, 6)) == math.ceil(35 / 5) == 7
    assert deepest(chapter.strided(36, 6)) == 2
    assert deepest(chapter.chunks(36, 6)) == 1


def test_a_global_position_is_a_hub_only_if_it_sees_everything():
    """64 words and a window of 8: nine layers, nine, and two."""
    alone = chapter.window(64, 8)
    seen = alone.clone()
    seen[:, 0] = True
    hub = seen.clone()
    hub[0] = True
    causal = chapter.all_pairs(64)
    layers = [int(chapter.first_reached(m)[causal].max()) for m in (alone, seen, hub)]
    assert layers == [9, 9, 2]


def test_linear_attention_in_three_forms():
    """With weights, as a recurrence and as a sum: one output; by hand, 26/6."""
    q, k, v = (chapter.elu_features(random(128, 8)), *random(2, 128, 8))
    k = chapter.elu_features(k)
    exact = chapter.as_attention(q, k, v)
    torch.testing.assert_close(chapter.as_recurrence(q, k, v), exact)
    torch.testing.assert_close(chapter.as_sum(q, k, v, r=32), exact)
    keys = torch.tensor([[1.0, 0], [0, 1], [1, 1]])
    values = torch.tensor([[6.0], [2], [4]])
    last = chapter.as_recurrence(keys + torch.tensor([1.0, 0]), keys, values)[-1]
    assert last.item() == pytest.approx(26 / 6)


@pytest.mark.parametrize("r", [4, 16])
def test_blocks_edges_and_masks_agree(r):
    """Windows, columns and chunks in blocks, and messages along edges."""
    n = 64
    q, k, v = random(3, n, 8)

    def under(mask):
        return scaled_dot_product_attention(q, k, v, mask)[0]

    for make in (chapter.window, chapter.strided, chapter.chunks):
        edges = make(n, r).nonzero().T
        passed = chapter.pass_messages(q, k, v, edges)
        torch.testing.assert_close(passed, under(make(n, r)))
    window = chapter.window_in_blocks(q, k, v, r)
    torch.testing.assert_close(window, under(chapter.window(n, r)))
    chunks = chapter.chunks_in_blocks(q, k, v, r)
    torch.testing.assert_close(chunks, under(chapter.chunks(n, r)))
    far = chapter.all_pairs(n) & (chapter.distance(n) % r == 0)
    torch.testing.assert_close(chapter.columns(q, k, v, r), under(far))


def test_episodes_can_be_answered_from_their_text():
    """Each question names a key that stands in the text, with its value."""
    torch.manual_seed(1)
    key, value, answers, far = chapter.episodes(20, 5)
    at = torch.arange(chapter.PLACES - chapter.ASKED, chapter.PLACES) - far
    assert torch.equal(key.gather(-1, at), key[..., -chapter.ASKED :])
    assert torch.equal(value.gather(-1, at) - 1, answers)
    assert (key[..., : -chapter.ASKED] > 0).sum(dim=-1).eq(5).all()
    assert far.min() >= 1


def test_what_the_last_question_reaches():
    """The window: 16 positions directly and 15 more; chunks: 16 and no more."""
    window, chunks = (chapter.ways(name)[-1] for name in ("window", "chunks"))
    assert [(window == way).sum().item() for way in (1, 2, 0)] == [16, 15, 17]
    assert [(chunks == way).sum().item() for way in (1, 2, 0)] == [16, 0, 32]
    assert (chapter.ways("strided")[-1] == 0).sum() == 0
    assert (chapter.ways("linear")[-1] == 1).all()


def test_the_three_models_train_apart():
    """The gradient of one run's loss leaves the weights of the others alone."""
    torch.manual_seed(3)
    model = chapter.Recaller(chapter.MIXERS["window"], 16)
    key, value, _, _ = chapter.episodes(4, 3)
    model(key, value)[0].sum().backward()
    for weight in model.weights():
        assert not weight.grad[1:].any()


def test_a_question_can_tell():
    """An earlier question about the same key that sees the pair itself."""
    mask = chapter.window(chapter.PLACES, 16)
    key = torch.zeros(1, 1, chapter.PLACES, dtype=torch.long)
    key[..., -chapter.ASKED :] = torch.tensor([7, 3, 3, 7, 1, 2, 4, 5])
    far = torch.full((1, 1, chapter.ASKED), 15)
    far[..., 3] = 18  # the second 7: three positions after the first
    found = chapter.told(mask, key, far)[0, 0].tolist()
    assert found[3]
    assert not found[0]
    assert not any(found[4:])


def test_largest_tensors():
    """The fused kernel makes none of n² numbers, equation (1) does."""
    x = torch.randn(512, 8)
    assert chapter.largest(lambda: chapter.fused(x, x, x)) == 512 * 8
    step_by_step = scaled_dot_product_attention
    assert chapter.largest(lambda: step_by_step(x, x, x)) == 512**2
    assert chapter.multiplications(lambda: step_by_step(x, x, x)) == 2 * 512**2 * 8
    assert chapter.in_bytes(48 * 100_000**2) == "1.92 TB"


def test_counts_of_the_table():
    """2n for all pairs, 4r for a window in blocks, 2r for chunks."""
    counts = chapter.counted()
    r = chapter.BLOCK
    assert counts.loc["all pairs"].tolist() == [2 * n for n in chapter.LENGTHS]
    assert set(counts.loc["window"]) == {4 * r}
    assert set(counts.loc["chunks"]) == {2 * r}
    strided = [4 * r + 2 * n // r for n in chapter.LENGTHS]
    assert counts.loc["strided"].tolist() == strided


def test_floors():
    """One copy leaves a fifth, three a thirteenth; a Monte Carlo agrees on the bell."""
    assert chapter.riff_floor(33) == pytest.approx(1 / 5)
    assert chapter.riff_floor(227) == pytest.approx(1 / 5)
    assert chapter.riff_floor(229) == pytest.approx(1 / 13)
    assert chapter.smooth_floor(1) == pytest.approx(1 / 5)
    assert chapter.smooth_floor(17) < 1.01 * chapter.smooth_floor(511)
    r = 5
    gap = torch.arange(r).double()
    C = torch.exp(-(((gap[:, None] - gap) / 3) ** 2) / 4)
    signals = random(200_000, r) @ torch.linalg.cholesky(C).mT
    noisy = signals + 0.5 * torch.randn(200_000, r).double()
    fit = torch.linalg.lstsq(noisy, signals[:, 2]).solution
    error = (noisy @ fit - signals[:, 2]).square().mean().item()
    assert error == pytest.approx(chapter.smooth_floor(r), rel=0.02)


def test_other_inputs_stay_reported_by_the_paper(capsys):
    """No image, audio or video was used."""
    chapter.settle_other_inputs()
    shown = capsys.readouterr().out
    claims = {c["id"]: c["verdict"] for c in json.loads(CLAIMS.read_text("utf-8"))}
    assert claims["s7-other-inputs"] in shown


DRAWINGS = {
    "five ways": chapter.five_ways(),
    "five ways, phone": chapter.five_ways(phone=True),
    "phone book": chapter.phone_book(),
    "phone book, phone": chapter.phone_book(phone=True),
    "blocks": chapter.computed_and_used(),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawings_fit_and_speak(name):
    """Words stay inside; each panel has a text alternative."""
    drawn = DRAWINGS[name]
    for panel in [drawn] if isinstance(drawn, Svg) else drawn:
        check_words(panel)


def test_the_key_picture_shows_the_counts():
    """The scores under each square are those of the masks."""
    said = [words for *_, words in texts(DRAWINGS["five ways"])]
    assert [word for word in said if word.isdigit()] == [
        "45",
        "1",
        "24",
        "4",
        "33",
        "2",
        "18",
        "1",
    ]


def test_the_reach_chart_s_legend_is_its_cells():
    """Colour and shape come from one encoding, without an opacity of their own."""
    squares = chapter.reach_chart().to_dict()["layer"][0]
    assert squares["encoding"]["color"]["field"] == "state"
    assert squares["encoding"]["shape"]["field"] == "state"
    assert "opacity" not in squares["encoding"]
    assert squares["mark"]["opacity"] == 1
    legend = squares["encoding"]["color"]["legend"]
    assert legend == squares["encoding"]["shape"]["legend"]
    assert legend["symbolOpacity"] == 1


def test_charts_with_a_guide_keep_their_data():
    """A line and its guide are layers of their own, each with its rows."""
    layers = chapter.storage_chart().to_dict()["layer"]
    assert all("data" in layer for layer in layers)
