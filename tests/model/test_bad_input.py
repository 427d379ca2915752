"""What a user may hand to a model by mistake: one sentence each."""

import math

import pytest
import torch

from aiayn.errors import InputError
from aiayn.model import (
    MultiHeadAttention,
    PositionwiseFeedForward,
    Transformer,
    causal_mask,
)
from aiayn.model.attention import FUSED_ABOVE
from aiayn.model.layers import ResidualNorm
from aiayn_book.recurrent import RecurrentConfig, RecurrentTranslator
from tests.model.samples import small_config

MODELS = {
    "transformer": lambda: Transformer(small_config()),
    "recurrent": lambda: RecurrentTranslator(RecurrentConfig(vocab_size=30)),
}
GOOD = torch.tensor([[5, 6, 2]])
BAD = {
    "a row, not a batch": (
        GOOD[0],
        "{} must hold token ids (int64) of shape (batch, length), not torch.int64 of "
        "shape (3,).",
    ),
    "floats": (
        GOOD.float(),
        "{} must hold token ids (int64) of shape (batch, length), not torch.float32 of "
        "shape (1, 3).",
    ),
    "booleans": (
        GOOD.bool(),
        "{} must hold token ids (int64) of shape (batch, length), not torch.bool of "
        "shape (1, 3).",
    ),
    "no tokens": (GOOD[:, :0], "{} is empty: every row needs at least one token."),
    "a token too large": (
        GOOD + 24,
        "{} holds token id 30, but vocab_size = 30 allows 0 to 29: cut the text into "
        "tokens with the tokenizer that the model was trained with.",
    ),
    "a negative token": (
        GOOD - 3,
        "{} holds token id -1, but vocab_size = 30 allows 0 to 29: cut the text into "
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
        ("source", lambda: model.start(tokens)),
        ("target", lambda: model(GOOD, tokens)),
    ]:
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value) == sentence.format(argument)


@pytest.mark.parametrize("name", MODELS)
def test_rows_that_do_not_pair_get_a_sentence(name):
    """Two sources and four targets would otherwise pass for two hypotheses each."""
    model = MODELS[name]()
    with pytest.raises(InputError, match="target has 4 rows and source 2: give one"):
        model(GOOD.expand(2, 3), GOOD.expand(4, 3))
    memory = model.encode(GOOD)
    with pytest.raises(
        InputError, match=r"memory is of \(1, 3\) positions, but source of \(1, 2\)"
    ):
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
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("length", [3, FUSED_ABOVE + 1])
def test_a_mask_of_numbers_gets_a_sentence(kind, need_weights, length):
    """Torch's fused kernel would add ones and zeros to the scores: nothing hidden."""
    attention, x = MultiHeadAttention(8, 2), torch.randn(1, length, 8)
    mask = causal_mask(length)
    with pytest.raises(InputError, match=f"but this one is of {kind}: give mask != 0"):
        attention(x, x, x, mask.to(kind), need_weights)
    right, _ = attention(x, x, x, mask, need_weights)
    followed, _ = attention(x, x, x, mask.to(kind) != 0, need_weights)
    assert followed.equal(right)


@pytest.mark.parametrize("dropout", [-0.5, 1.0, 1.5, math.nan])
def test_a_feed_forward_layer_drops_with_a_probability(dropout):
    with pytest.raises(InputError, match="dropout is a probability"):
        PositionwiseFeedForward(4, 8, dropout)


@pytest.mark.parametrize("norm", ["Pre", None])
def test_another_place_of_the_norm_gets_a_sentence(norm):
    """It would pass for post-norm."""
    with pytest.raises(InputError, match=f"norm must be 'post' or 'pre', not {norm!r}"):
        ResidualNorm(4, norm=norm)
