"""What a user may hand to a model by mistake: one sentence each."""

import re

import pytest
import torch
from torch.testing import assert_close

from aiayn.errors import InputError
from aiayn.model import (
    MultiHeadAttention,
    RotaryAttention,
    Transformer,
    additive_attention,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
    shift_right,
)
from aiayn.model.layers import ResidualNorm
from aiayn_book.recurrent import RecurrentConfig, RecurrentTranslator
from tests.model.samples import small_config

MODELS = {
    "transformer": lambda: Transformer(small_config()),
    "recurrent": lambda: RecurrentTranslator(RecurrentConfig(vocab_size=30)),
}
GOOD = torch.tensor([[5, 6, 2]])
NO_IDS = (
    "{} must hold token ids (int64) of shape (batch, length), at least one in each "
    "row, not torch."
)
BAD = {
    "a row, not a batch": (GOOD[0], NO_IDS + "int64 of shape (3,)."),
    "floats": (GOOD.float(), NO_IDS + "float32 of shape (1, 3)."),
    "booleans": (GOOD.bool(), NO_IDS + "bool of shape (1, 3)."),
    "no tokens": (GOOD[:, :0], NO_IDS + "int64 of shape (1, 0)."),
    "a token too large": (
        GOOD + 24,
        "There is a token id 30, but vocab_size = 30 allows 0 to 29: cut the text into "
        "tokens with the tokenizer that the model was trained with.",
    ),
    "a negative token": (
        GOOD - 3,
        "There is a token id -1, but vocab_size = 30 allows 0 to 29: cut the text into "
        "tokens with the tokenizer that the model was trained with.",
    ),
}

pytestmark = pytest.mark.usefixtures("unchecked_shapes")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("tokens", "sentence"), BAD.values(), ids=BAD)
def test_bad_tokens_get_a_sentence_that_names_the_argument(name, tokens, sentence):
    model = MODELS[name]()
    for argument, call in [
        ("source", lambda: model(tokens, GOOD)),
        ("source", lambda: model.init_decode(tokens)),
        ("target", lambda: model(GOOD, tokens)),
    ]:
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value) == sentence.format(argument)


@pytest.mark.parametrize("name", MODELS)
def test_rows_that_do_not_pair_get_a_sentence(name):
    """Two sources and four targets would otherwise pass for two hypotheses each."""
    model = MODELS[name]()
    with pytest.raises(InputError, match=r"\(4, 3\), .*\(2, 3\) do not belong"):
        model(GOOD.expand(2, 3), GOOD.expand(4, 3))
    memory = model.encode(GOOD)
    with pytest.raises(InputError, match=r"\(1, 2\) do not belong .* the memory that"):
        model.decode(GOOD, memory, GOOD[:, :2])


@pytest.mark.parametrize("name", MODELS)
def test_int32_tokens_are_good_tokens(name):
    model = MODELS[name]().eval()
    assert model(GOOD.int(), GOOD.int()).equal(model(GOOD, GOOD))


def test_a_recurrent_model_without_attention_has_no_weights():
    model = RecurrentTranslator(RecurrentConfig(attention=False))
    with pytest.raises(InputError, match="attention=False has no weights"):
        model.attention_weights(GOOD, GOOD)


@pytest.mark.parametrize("kind", [torch.float32, torch.int64], ids=str)
def test_a_mask_of_numbers_gets_a_sentence(form, kind, need_weights):
    """Torch's fused kernel would add ones and zeros to the scores: nothing hidden."""
    length = 3
    attention, x = form(MultiHeadAttention(8, 2)), torch.randn(1, length, 8)
    mask = causal_mask(length)
    with pytest.raises(InputError, match=f"but this one is of {kind}: give mask != 0"):
        attention(x, x, x, mask.to(kind), need_weights)
    right, _ = attention(x, x, x, mask, need_weights)
    followed, _ = attention(x, x, x, mask.to(kind) != 0, need_weights)
    assert followed.equal(right)


QUERY, MEMORY = torch.randn(3, 4, 8), torch.randn(3, 5, 8)
BAD_SHAPES = {
    "a query of another batch size": (
        QUERY[:1],
        MEMORY,
        None,
        "(1, 4, 8), (3, 5, 8)",
    ),
    "a memory of another batch size": (
        QUERY,
        MEMORY[:1],
        None,
        "(3, 4, 8), (1, 5, 8)",
    ),
    "no dimension of a batch": (
        QUERY[0],
        MEMORY[0],
        None,
        "(x[None] for one sentence)",
    ),
    "a mask of (batch, keys)": (
        QUERY,
        MEMORY,
        torch.ones(3, 5) > 0,
        "A mask of (batch, keys) is meant as mask[:, None, None, :]",
    ),
    "a mask of (batch, 1, keys)": (
        QUERY,
        MEMORY,
        torch.ones(3, 1, 5) > 0,
        "of shape (3, 1, 5) does not fit scores of shape (3, 2, 4, 5)",
    ),
    "a mask of (batch·heads, queries, keys)": (
        QUERY,
        MEMORY,
        torch.ones(6, 4, 5) > 0,
        "must be (queries, keys) or (batch, heads, queries, keys)",
    ),
    "a mask of (batch, queries, keys)": (
        QUERY,
        MEMORY,
        torch.ones(3, 4, 5) > 0,
        "one of (batch, queries, keys) as mask[:, None]",
    ),
    "a mask of another batch size": (
        QUERY,
        MEMORY,
        torch.ones(2, 1, 4, 5) > 0,
        "of shape (2, 1, 4, 5) does not fit",
    ),
    "a mask of other keys": (QUERY, MEMORY, torch.ones(4, 6) > 0, "of shape (4, 6)"),
    "a query without the batch of its memory": (
        QUERY[0],
        MEMORY,
        None,
        "of shapes (4, 8), (3, 5, 8), (3, 5, 8) do not fit together",
    ),
    "a vector": (QUERY[0, 0], MEMORY, None, "of shapes (8,), (3, 5, 8)"),
    "another width": (
        QUERY[..., :7],
        MEMORY,
        None,
        "(batch, length, d_model = 8)",
    ),
    "another width of the memory": (
        QUERY,
        MEMORY[..., :1],
        None,
        "(3, 4, 8), (3, 5, 1), (3, 5, 1) do not fit",
    ),
    "a mask that is a list": (QUERY, MEMORY, [[True] * 5] * 4, "this one is of list"),
}


@pytest.mark.parametrize(
    ("query", "memory", "mask", "sentence"), BAD_SHAPES.values(), ids=BAD_SHAPES
)
def test_shapes_that_do_not_fit_get_a_sentence_in_every_form(
    form, need_weights, query, memory, mask, sentence
):
    """Nothing is broadcast by accident, and a mask of three dimensions not guessed."""
    attention = form(MultiHeadAttention(8, 2))
    with pytest.raises(InputError, match=re.escape(sentence)):
        attention(query, memory, memory, mask, need_weights)


@pytest.mark.parametrize(
    "attend",
    [
        scaled_dot_product_attention,
        lambda q, k, v, mask: additive_attention(q, k, v, torch.ones(8), mask),
    ],
    ids=["scaled dot-product", "additive"],
)
@pytest.mark.parametrize(
    "mask",
    [torch.ones(3, 5) > 0, torch.ones(2, 4, 5) > 0, torch.ones(7, 3, 4, 5) > 0],
    ids=lambda mask: str(tuple(mask.shape)),
)
def test_a_mask_never_widens_the_result_of_an_attention_function(attend, mask):
    with pytest.raises(InputError, match=r"does not fit scores of shape \(3, 4, 5\)"):
        attend(QUERY, MEMORY, MEMORY, mask)
    with pytest.raises(InputError, match=r"this one is of torch\.float32"):
        attend(QUERY, MEMORY, MEMORY, torch.ones(4, 5))


def attends_as_queries_and_keys(attend, mask, right):
    """A mask is read as the one of four dimensions that it stands for."""
    assert_close(attend(mask)[0], attend(right)[0])
    meant = mask[:, None, None, :].expand(right.size(0), right.size(1), -1, -1)
    assert not attend(mask)[0].allclose(attend(meant)[0])


def test_a_mask_of_two_dimensions_is_never_of_sentences(form, need_weights):
    """Also where it could be: as many sentences as queries, and as many as keys."""
    attention, x = form(MultiHeadAttention(8, 2)), torch.randn(5, 5, 8)
    mask = torch.eye(5) + causal_mask(5).flip(1) > 0
    attends_as_queries_and_keys(
        lambda m: attention(x, x, x, m, need_weights), mask, mask.expand(5, 2, 5, 5)
    )
    for attend in (
        scaled_dot_product_attention,
        lambda q, k, v, m: additive_attention(q, k, v, torch.ones(8), m),
    ):
        heads = x[:, None].expand(5, 2, 5, 8)
        attends_as_queries_and_keys(
            lambda m, a=attend, h=heads: a(h, h, h, m), mask, mask.expand(5, 2, 5, 5)
        )


BAD_FOR_FUNCTIONS = {
    "a vector": (QUERY[0, 0], MEMORY, MEMORY, "must be of shape (…, length, width)"),
    "another batch size": (QUERY[:2], MEMORY, MEMORY, "must be equal or 1"),
    "another batch size of values": (QUERY, MEMORY, MEMORY[:2], "must be equal or 1"),
    "another width": (
        QUERY[..., :7],
        MEMORY,
        MEMORY,
        "key of the same width",
    ),
    "a width of one": (
        QUERY[..., :1],
        MEMORY,
        MEMORY,
        "key of the same width",
    ),
    "fewer values": (QUERY, MEMORY, MEMORY[:, :4], "one value for each key"),
    "one value": (QUERY, MEMORY, MEMORY[:, :1], "one value for each key"),
}


@pytest.mark.parametrize(
    "attend",
    [
        scaled_dot_product_attention,
        lambda q, k, v: additive_attention(q, k, v, torch.ones(q.size(-1))),
    ],
    ids=["scaled dot-product", "additive"],
)
@pytest.mark.parametrize(
    ("query", "key", "value", "sentence"),
    BAD_FOR_FUNCTIONS.values(),
    ids=BAD_FOR_FUNCTIONS,
)
def test_what_an_attention_function_is_given_must_fit(
    attend, query, key, value, sentence
):
    with pytest.raises(InputError, match=re.escape(sentence)):
        attend(query, key, value)


def test_keys_without_as_many_values_get_a_sentence(form, need_weights):
    with pytest.raises(InputError, match="one value for each key"):
        form(MultiHeadAttention(8, 2))(QUERY, MEMORY, QUERY, None, need_weights)


def test_additive_attention_has_a_weight_for_each_entry():
    with pytest.raises(InputError, match=r"score_weight must be of shape \(8,\)"):
        additive_attention(QUERY, MEMORY, MEMORY, torch.ones(1))


@pytest.mark.parametrize("shape", [(5, 8), (8,), (3, 2, 5, 8)], ids=str)
def test_rotary_attention_too_needs_a_batch(form, need_weights, shape):
    x = torch.randn(shape)
    with pytest.raises(InputError, match="must be of shape"):
        form(RotaryAttention(8, 2))(x, x, x, None, need_weights)
    with pytest.raises(InputError, match="must be of shape"):
        form(RotaryAttention(8, 2))(x, QUERY, QUERY, None, need_weights)


def test_a_row_alone_is_no_batch_for_masks_and_shifts():
    for call, name in (
        (lambda row: padding_mask(row, 0), "tokens"),
        (lambda row: shift_right(row, 1), "target"),
    ):
        with pytest.raises(InputError, match=f"{name} must hold token ids"):
            call(GOOD[0])


LEFT, ZERO = torch.tensor([[5, 6, 7], [0, 6, 2]]), torch.tensor([[5, 6, 2], [5, 0, 6]])


@pytest.mark.parametrize("tokens", [LEFT, ZERO], ids=["on the left", "a word 0"])
def test_padding_inside_a_row_gets_a_sentence(form, tokens):
    """It would shift the positions, or hide a word of somebody's vocabulary."""
    model = form(Transformer(small_config()))
    fine = torch.tensor([[5, 6, 2], [7, 2, 0]])
    for call, name in (
        (lambda: model(tokens, fine), "source"),
        (lambda: model.init_decode(tokens), "source"),
        (lambda: model(fine, torch.cat([fine[:, :1], tokens], dim=1)), "target"),
    ):
        with pytest.raises(InputError, match=f"Row 1 of {name} goes on after padding"):
            call()
    masks = {"source_mask": torch.ones(2, 1, 1, 3) > 0}
    model(tokens, fine, **masks)  # which says that it is meant
    other = form(Transformer(small_config(pad_id=29)))
    other(tokens, fine)
    model(fine, shift_right(fine, 0))  # some models begin with padding


@pytest.mark.parametrize("norm", ["Pre", None])
def test_another_place_of_the_norm_gets_a_sentence(norm):
    """It would pass for post-norm."""
    with pytest.raises(InputError, match=f"norm must be 'post' or 'pre', not {norm!r}"):
        ResidualNorm(4, norm=norm)
