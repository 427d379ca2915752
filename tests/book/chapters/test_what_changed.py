"""Chapter 21: its parts are what the text says, its drawings and records hold."""

import math
import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from aiayn import (
    MultiHeadAttention,
    causal_mask,
    scaled_dot_product_attention,
    sinusoidal_positional_encoding,
)
from aiayn.model import DecoderLayer, EncoderLayer, PositionwiseFeedForward, rotate
from aiayn_book.chapters import what_changed as chapter
from tests.book.chapters.drawings import check_words, texts


def same(one, other, off=1e-9):
    return torch.allclose(one, other, atol=off, rtol=0)


def random(*shape, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.fixture
def pair():
    generator = torch.Generator().manual_seed(2)
    draw = torch.randint(3, 99, (2, 2, 6), generator=generator)
    return draw[0], draw[1]


def model():
    torch.manual_seed(3)
    return chapter.paper(vocab_size=100).double().eval()


@torch.no_grad()
def cached(model, source, target):
    """Logits of the library's own loop, one token at a time."""
    cache = model.init_decode(source)
    steps = [model.decode_step(token, cache) for token in target.unbind(1)]
    return torch.stack(steps, dim=1), cache


def like(kind, **options):
    """Another class of attention with the same weights."""

    def make(old):
        new = kind(old.query_projection.in_features, old.num_heads, **options).double()
        new.load_state_dict(old.state_dict())
        return new

    return make


def test_words_stay_inside():
    """And there is a text alternative of more than a few words."""
    for drawing in chapter.blocks():
        check_words(drawing)


def test_the_blocks_have_the_same_numbers():
    """Every marked detail stands on both sides."""
    old, new = (
        sorted(words for *_, words in texts(drawing) if re.fullmatch("[1-6]", words))
        for drawing in chapter.blocks()
    )
    assert old == ["1", "1", "2", "2", "3", "4", "5", "6"]
    assert new == old


def test_rms_norm():
    """By hand, as in PyTorch, and as LayerNorm of a vector without a mean."""
    found = chapter.RMSNorm(2)(torch.tensor([1.0, 7.0]))
    assert same(found, torch.tensor([0.2, 1.4]), 1e-6)
    x, ours = random(5, 64), chapter.RMSNorm(64).double()
    assert same(ours(x), nn.RMSNorm(64, eps=1e-5).double()(x))
    centred = x - x.mean(dim=-1, keepdim=True)
    assert same(ours(centred), nn.LayerNorm(64).double()(x))
    assert not same(ours(x), nn.LayerNorm(64).double()(x), 0.1)


def test_the_papers_layer_gates_itself():
    plain = PositionwiseFeedForward(64, 128).double()  # its biases are 0
    gated = chapter.GatedFeedForward(64, 128, lambda h: (h > 0).to(h)).double()
    gated.gate.weight = gated.value.weight = plain.inner.weight
    gated.outer.weight = plain.outer.weight
    x = random(5, 64)
    assert same(plain(x), gated(x))
    assert F.silu(torch.tensor(2.0)).item() == pytest.approx(1.76, abs=0.005)
    assert F.silu(torch.tensor(-1.0)).item() == pytest.approx(-0.27, abs=0.005)
    same_width = chapter.parameters(chapter.GatedFeedForward(512, 2048))
    assert same_width == 3 * 512 * 2048  # half as many again as two matrices


def test_a_rotated_score_depends_on_the_distance():
    apart = chapter.scores_at_offset(3)
    assert apart["rotated"] < 1e-10 < 1 < apart["added"]


def test_two_layouts_of_one_rotation():
    """Equal after reordering the dimensions, and wrong without it."""
    x, y = random(2, 10, 8)
    table = sinusoidal_positional_encoding(10, 8).double()
    order = torch.arange(8).unflatten(0, (-1, 2)).T.flatten()  # pairs into halves
    halves = rotate(x[..., order], table) @ rotate(y[..., order], table).mT
    right = chapter.turn(x) @ chapter.turn(y).mT
    assert same(right, halves, 1e-5)
    assert not same(right, rotate(x, table) @ rotate(y, table).mT, 0.1)


class Forgets(MultiHeadAttention):
    """Rotates a cached query as if it stood at position 0."""

    def attention(self, queries, keys, *rest):
        turned = chapter.turn(queries), chapter.turn(keys)
        return super().attention(*turned, *rest)


@pytest.mark.parametrize(
    ("kind", "right"),
    [(chapter.Rotary, True), (Forgets, False)],
    ids=["right", "wrong"],
)
def test_rotary_positions_with_a_cache(kind, right, pair):
    rotary = model()
    chapter.exchange(rotary, MultiHeadAttention, like(kind), "self_attention")
    with torch.no_grad():
        whole = rotary(*pair)
    assert same(whole, cached(rotary, *pair)[0]) == right


@pytest.mark.parametrize("groups", [4, 2, 1])
def test_shared_keys_are_equal_heads(groups, pair):
    """The paper's class with copied weights gives the same; the cache is smaller."""
    grouped = chapter.Grouped(64, 4, groups).double()
    weights = grouped.state_dict()
    for name in ("key_projection.weight", "value_projection.weight"):
        heads = weights[name].unflatten(0, (groups, 16))
        weights[name] = heads.repeat_interleave(4 // groups, dim=0).flatten(0, 1)
    full = MultiHeadAttention(64, 4).double()
    full.load_state_dict(weights)
    x = random(2, 7, 64)
    assert same(grouped(x, x, x)[0], full(x, x, x)[0])
    writer = chapter.with_attention(
        chapter.paper(vocab_size=100), chapter.Grouped, groups=groups
    ).eval()
    source, target = pair
    _, cache = cached(writer, source, target[:, :5])
    kept = [written for written, _ in cache.layers]
    size = sum(one.keys[0].numel() + one.values[0].numel() for one in kept)
    assert size == 2 * 2 * groups * 16 * 5 == chapter.cache_bytes(2, groups, 16, 5, 1)


@pytest.mark.parametrize("tile", [1, 7, 64, 100])
def test_tiles_give_the_same_numbers(tile):
    q, k, v = random(3, 2, 4, 100, 16)
    mask = torch.rand(2, 1, 100, 100, generator=torch.Generator().manual_seed(1)) < 0.5
    mask[0, 0, 0] = False  # may attend to nothing
    exact, _ = scaled_dot_product_attention(q, k, v, mask)
    assert same(chapter.tiled_attention(q, k, v, mask, tile), exact)
    assert chapter.tiled_attention(1000 * q, k, v, mask, tile).isfinite().all()


class Tiled(MultiHeadAttention):
    """The paper's attention, by tiles of three keys."""

    def attention(self, queries, keys, values, mask=None, need_weights=False):
        return chapter.tiled_attention(queries, keys, values, mask, tile=3), None


def test_tiles_in_the_whole_model(pair):
    plain, tiled = model(), model()
    chapter.exchange(tiled, MultiHeadAttention, like(Tiled))
    with torch.no_grad():
        assert same(plain(*pair), tiled(*pair))
    assert same(cached(plain, *pair)[0], cached(tiled, *pair)[0])


def test_what_is_held_grows_as_the_text_says():
    """Equation (1) and plain tiles fourfold, recomputed and fused ones double."""
    mib = chapter.memory().set_index(["attention", "tokens"])
    assert mib.largest["equation (1)", 2048] == 16
    assert mib.largest["tiles", 2048] == 0.5
    for name, most in (("equation (1)", 3.5), ("tiles", 3.5)):
        assert mib.kept[name, 2048] > most * mib.kept[name, 1024]
    for name in ("tiles, computed twice", "PyTorch, fused"):
        assert mib.kept[name, 2048] < 2.1 * mib.kept[name, 1024]


def test_a_decoder_without_cross_attention_is_the_encoders_layer():
    config = chapter.paper(vocab_size=9, norm="pre").config
    decoder, encoder = DecoderLayer(config).double(), EncoderLayer(config).double()
    nn.init.zeros_(decoder.cross_attention.output_projection.weight)
    result = encoder.load_state_dict(decoder.state_dict(), strict=False)
    assert not result.missing_keys
    x, memory, mask = random(2, 7, 64), random(2, 5, 64), causal_mask(7)
    assert same(encoder(x, mask)[0], decoder(x, memory, mask)[0])


def test_one_stack_has_as_many_weights():
    found = chapter.sizes()
    assert max(found.values()) / min(found.values()) < 1.01


def test_the_example_of_the_three_skills(monkeypatch):
    """b d a c 3 5 becomes 3 c a d b 1."""
    letters, p, q = (
        torch.tensor([[1, 3, 0, 2]]),
        torch.tensor([[3]]),
        torch.tensor([[5]]),
    )
    drawn = iter([letters, p, q])
    monkeypatch.setattr(torch, "randint", lambda *_, **__: next(drawn))
    source, target = chapter.draw_sums(1)
    assert source.tolist() == [[3, 5, 2, 4, 13, 22]]
    assert target.tolist() == [[13, 4, 2, 5, 3, 11]]


@pytest.mark.parametrize("part", chapter.REMOVED[1:])
def test_a_removed_part_matters_no_more(part, pair):
    """Its weights may be anything: the logits stay as they are."""
    whole = model()
    maimed = chapter.remove(model(), part)
    names = {
        "feed-forward": "feed_forward.",
        "norms": ".norm.",
        "cross-attention": "cross_attention.",
    }
    with torch.no_grad():
        assert not same(whole(*pair), maimed(*pair), 1e-3)
    if part in names:
        assert not any(names[part] in name for name, _ in maimed.named_parameters())


def test_striking_off():
    """Of one letter in four, by hand: with the last one left it is certain."""
    assert chapter.by_striking_off() == pytest.approx(0.607, abs=5e-4)


def test_a_training_lowers_the_loss(monkeypatch):
    few = chapter.sentences.__wrapped__(3000, held_out=50)
    monkeypatch.setattr(chapter, "sentences", lambda: few)
    (_, early), (_, late) = chapter.train("pre-norm", 1, steps=40, every=20)
    assert late < early < math.log(len(few.vocabulary)) + 1
    assert chapter.train("pre-norm", 1, steps=40, every=20)[1][1] == late


def test_the_rule_of_two_standard_errors():
    """Ratios of e^0.1 and e^0.3: a mean of 0.2, a standard error of 0.1."""
    gain = chapter.Gain(0.004, {800: [0.1, 0.3]}, {})
    ratio, low, high = gain.ratio()
    assert ratio == pytest.approx(math.exp(0.2))
    assert (low, high) == (pytest.approx(1.0), pytest.approx(math.exp(0.4)))
    better = chapter.Gain(0.004, {800: [-0.3, -0.31]}, {})
    assert better.verdict() == "better"
    assert chapter.Gain(0.004, {800: [0.3, 0.31]}, {}).verdict() == "worse"
    assert chapter.Gain(0.004, {800: [-0.3, 0.31]}, {}).verdict() == "within noise"
    assert gain.detects() == pytest.approx(math.expm1(0.284), abs=1e-3)


def test_what_the_answer_says_of_the_record():
    """Pre-norm lowers the loss by a fifth and tolerates twice the rate."""
    gains = chapter.gains()
    assert 0.72 < gains["pre-norm"].ratio()[0] < 0.85
    assert 0.7 < gains["rotary"].ratio(300)[0] < 0.87
    assert gains["1 key head"].ratio()[0] > gains["2 key heads"].ratio()[0] > 1.1
    twice = gains["pre-norm"].by_rate[0.008]
    assert max(twice) < min(gains["the paper"].by_rate[0.008])
    runs = [len(seeds) for gain in gains.values() for seeds in gain.by_rate.values()]
    assert sum(runs) == 63


def test_the_captions_differ_in_their_positions():
    found = chapter.captions()
    own = {"positions", "steps", "cooldown_steps", "threads"}
    assert found.differ == own
    assert found.ahead[0] == found.ahead[1] > 10
    rotary, sinusoids = (
        sum(found.bleu[way]) / len(found.bleu[way]) for way in ("rotary", "sinusoids")
    )
    assert rotary - sinusoids == pytest.approx(0.8, abs=0.05)


def test_three_quarters_of_adams_steps():
    found = chapter.needed()
    assert all(0.65 < share < 0.8 for share in found.steps)


def test_the_step_at_which_a_loss_is_met():
    """A straight line between two checks."""
    checks = [(100, 4.0), (200, 2.0), (300, 1.0)]
    assert chapter.met(checks, 3.0) == 150
    assert chapter.met(checks, 1.5) == 250
    with pytest.raises(ValueError, match="never"):
        chapter.met(checks, 0.5)


def test_muon_needs_a_part_of_its_steps():
    """And a larger part of the time, in each of three seeds."""
    found = chapter.needed()
    assert len(found.steps) == len(found.time) == 3
    for steps, time in zip(found.steps, found.time, strict=True):
        assert steps < time < 1


def test_the_second_check_and_all_later_ones_are_muons():
    """As the caption says."""
    runs = chapter.optimizer_runs()
    ours = runs.optimizer == "muon"
    muons = [dict(checks) for checks in runs[ours].validation]
    adams = [dict(checks) for checks in runs[~ours].validation]
    _, *later = muons[0]
    for step in later:
        assert max(run[step] for run in muons) < min(run[step] for run in adams)


def test_the_table_has_three_ways():
    table = chapter.optimizer_table()
    assert list(table.index) == ["Adam, half the rate", "Adam", "Muon and Adam"]
    others = table.drop("Muon and Adam")
    assert table.loc["Muon and Adam", "most"] < others["least"].min()
