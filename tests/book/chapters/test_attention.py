"""Chapter 3: its drawings show attention, its claims can fail, its text is true."""

import math
import re

import pytest
import torch

from aiayn import scaled_dot_product_attention
from aiayn_book import claims
from aiayn_book.chapters import attention as chapter
from aiayn_book.ledger import records_in_html
from tests.book.chapters.drawings import check_words, texts

W = torch.linspace(-1, 1, 60).view(10, 6)
WORDS = ["the", "cat", "saw", "black"]
TABLE = torch.linspace(0, 1, 64).view(8, 8)
DRAWINGS = {
    "look-up": [chapter.soft_lookup(), chapter.soft_lookup(phone=True)],
    "projections": [chapter.projections()],
    "learned matrices": chapter.learned_matrices(W, W, W, W, WORDS),
    "shuffled words": chapter.shuffled_words(),
    "influence": chapter.influence_maps(TABLE, TABLE.tril()),
    "shapes": [
        chapter.cross_attention_shapes(),
        chapter.cross_attention_shapes(phone=True),
    ],
}


@pytest.mark.parametrize("drawings", DRAWINGS.values(), ids=DRAWINGS)
def test_words_stay_inside(drawings):
    """And there is a text alternative of more than a few words."""
    for drawing in drawings:
        check_words(drawing)


def test_the_look_up_that_is_drawn_is_the_one_by_hand():
    """Weights and answer, as in the table of the text."""
    shown = {words for *_, words in texts(chapter.soft_lookup())}
    total = math.exp(2) + math.exp(0) + math.exp(1)
    assert f"{total:.2f}" == "11.11"
    for score in (2, 0, 1):
        assert f"{math.exp(score) / total:.2f}" in shown
    assert {"6.7", "2.4", "10"} <= shown


def test_a_shuffle_moves_the_outputs_that_are_drawn():
    """The bars of dog are the same, in another column."""
    bars = [
        re.findall(r'height="([\d.]+)" style="fill: var\(--aiayn-value', one.markup)
        for one in chapter.shuffled_words()
    ]
    (dog, bites, man), again = (
        [tuple(heights[i : i + 6]) for i in (0, 6, 12)] for heights in bars
    )
    assert again == [man, bites, dog]
    assert len({dog, bites, man}) == 3


def test_the_weight_of_the_word_before():
    weights = torch.tensor([[[1.0, 0, 0], [0.8, 0.2, 0], [0, 0.6, 0.4]]])
    assert chapter.weight_on_previous(weights) == pytest.approx(0.7)


@pytest.fixture
def settled(monkeypatch):
    """Calls something and returns the record that the ledger would read of it."""
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)

    def record(settle, *given):
        settle(*given)
        (found,) = records_in_html(shown.pop()._repr_html_(), "03-attention")
        return found

    return record


def slowly(query, keys, values):
    """One query, as the chapter's loop has it."""
    parts = [
        math.exp(sum(map(float.__mul__, query, key)) / math.sqrt(len(query)))
        for key in keys
    ]
    weights = [part / sum(parts) for part in parts]
    columns = zip(*values, strict=True)
    return [sum(map(float.__mul__, weights, column)) for column in columns], weights


def unscaled(query, key, value):
    weights = (query @ key.mT).softmax(dim=-1)
    return weights @ value, weights


def over_queries(query, key, value):
    weights = (query @ key.mT / math.sqrt(query.size(-1))).softmax(dim=-2)
    return weights @ value, weights


@pytest.mark.parametrize(
    ("claim", "settle", "right", "wrong"),
    [
        (
            "s3.2.1-equation-1",
            chapter.settle_equation_1,
            (scaled_dot_product_attention, slowly),
            (unscaled, slowly),
        ),
        (
            "s3.2-attention",
            chapter.settle_attention,
            (scaled_dot_product_attention,),
            (over_queries,),
        ),
        (
            "s2-self-attention",
            chapter.settle_self_attention,
            (TABLE + 1, TABLE.tril()),
            (TABLE, TABLE.tril()),
        ),
    ],
)
def test_a_definition_is_checked_and_could_fail(settled, claim, settle, right, wrong):
    """Without the root, with a softmax over queries, with a pair unconnected."""
    holds, fails = settled(settle, *right), settled(settle, *wrong)
    assert (holds.claim_id, holds.verdict) == (claim, "defined")
    assert fails.verdict == "open"


def test_influence_is_the_norm_of_a_derivative():
    """Of a mixture of positions: its weights, times the root of the width 4."""
    mixing = torch.tensor([[2.0, 0.0], [1.0, -3.0]])
    found = chapter.influence(lambda x: mixing @ x, torch.randn(2, 4))
    assert torch.allclose(found, mixing.abs() * 2)


# What the chapter says in words.

Q = torch.tensor([[0.0, 4, 0, 0], [2.0, 0, 2, 0], [0.0, 0, 0, 0]])


def test_the_weights_do_not_depend_on_the_values():
    """And with the identity for W_V, attention averages the embeddings."""
    x, W_Q, W_K, W_V = (torch.randn(s) for s in ((5, 12), (12, 4), (12, 4), (12, 12)))
    context, weights = scaled_dot_product_attention(x @ W_Q, x @ W_K, x)
    other, again = scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V)
    assert torch.equal(weights, again)
    assert torch.allclose(context, weights @ x)
    assert not torch.allclose(other, weights @ x)


def test_keys_belong_to_their_values():
    """Shuffled together they change nothing, keys alone do."""
    q, k, v = torch.randn(6, 16), torch.randn(6, 16), torch.randn(6, 8)
    shuffle = torch.tensor([3, 1, 5, 0, 2, 4])
    plain = scaled_dot_product_attention(q, k, v)[0]
    both = scaled_dot_product_attention(q, k[shuffle], v[shuffle])[0]
    alone = scaled_dot_product_attention(q, k[shuffle], v)[0]
    assert torch.allclose(both, plain, atol=1e-6)
    assert not torch.allclose(alone, plain, atol=1e-2)


def test_a_softmax_over_queries_gives_each_key_one_unit():
    """The sums of the pitfall, while all weights together are still three."""
    scores = Q @ chapter.KEYS.T / 2
    sums = scores.softmax(dim=0).sum(dim=-1)
    assert [f"{total:.2f}" for total in sums] == ["1.11", "1.47", "0.42"]
    assert sums.sum() == pytest.approx(3)


@pytest.mark.parametrize(("batch", "moves"), [(0, False), (1, True)])
def test_in_the_recurrent_layout_sentences_attend_to_each_other(batch, moves):
    """As many words as sentences, so that no error says it."""
    x = torch.randn(6, 6, 16)
    changed = x.clone()
    changed.select(batch, 1).add_(1)
    before, after = (
        scaled_dot_product_attention(one, one, one)[0].select(batch, 0)
        for one in (x, changed)
    )
    assert torch.equal(before, after) != moves


def test_where_nothing_may_be_attended_to_the_formula_has_no_value():
    """NaN by the formula, zeros by the package and by PyTorch."""
    mask = torch.tensor([[True, True, True], [False, False, False]])
    q, k, v = torch.randn(2, 4), torch.randn(3, 4), torch.randn(3, 2)
    plain = (q @ k.mT / 2).masked_fill(~mask, -math.inf).softmax(dim=-1) @ v
    ours, _ = scaled_dot_product_attention(q, k, v, mask)
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert plain[1].isnan().all()
    assert (ours[1] == 0).all()
    assert (theirs[1] == 0).all()


def test_the_root_may_go_to_the_queries_and_dropped_weights_sum_to_no_one():
    """The two deviations."""
    q, k, v = torch.randn(5, 12), torch.randn(7, 12), torch.randn(7, 8)
    context, weights = scaled_dot_product_attention(q, k, v)
    root_first = (q / math.sqrt(12) @ k.mT).softmax(dim=-1) @ v
    assert torch.allclose(root_first, context, atol=1e-5)
    sums = torch.nn.functional.dropout(weights, p=0.3).sum(dim=-1)
    assert (sums - 1).abs().max() > 0.1


def test_a_dictionary_whose_values_are_its_keys_answers_cat():
    """Tied, the answer is the English word; untied, the German one."""
    codes = torch.eye(6)
    english, german = codes[:3], codes[3:]
    for value, answer in ((english, 0), (german, 3)):
        context, _ = scaled_dot_product_attention(100 * english[:1], english, value)
        assert context.argmax() == answer


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_training_finds_the_pattern_set_by_hand(seed):
    """With any of these seeds: position i scores highest with position i - 1."""
    torch.manual_seed(seed)
    shapes = (10, 6), (10, 6), (10, 4)
    matrices = [(0.3 * torch.randn(shape)).requires_grad_() for shape in shapes]
    optimizer = torch.optim.Adam(matrices, lr=0.05)
    for _ in range(301):
        drawn = torch.randint(4, (32, 6))
        where = torch.eye(6).expand(32, 6, 6)
        x = torch.cat([torch.eye(4)[drawn], where], dim=-1)
        context, weights = scaled_dot_product_attention(*(x @ W for W in matrices))
        guesses = context[:, 1:].flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(guesses, drawn[:, :-1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert chapter.weight_on_previous(weights) > 0.99
    product = matrices[0] @ matrices[1].mT
    assert product[5:, 4:].argmax(dim=-1).tolist() == [0, 1, 2, 3, 4]
