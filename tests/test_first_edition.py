"""What the second edition must not change: recorded with version 0.1, held here.

Losses, gradients, updates and search outputs of four small models, and the logs and
translations of two small trainings, all in float64 without dropout. The runs' folders
are those that version 0.1 wrote.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch

from aiayn import (
    Transformer,
    TransformerConfig,
    beam_search,
    fast,
    greedy_search,
    load_translator,
    resume_training,
    train,
    translate,
)
from aiayn.data import Batch
from aiayn.inference import beam_search_n_best
from aiayn.training import Criterion, Trainer, TrainingConfig

HERE = Path(__file__).parent / "first_edition"
RECORD = json.loads((HERE / "record.json").read_text(encoding="utf-8"))
ENDS = {"bos_id": 1, "eos_id": 2}
SIZES = {
    "vocab_size": 40,
    "d_model": 8,
    "d_ff": 12,
    "num_heads": 2,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "dropout": 0.0,
}
RUNS = {
    "padded, adam": {"optimizer": "adam", "packed_length": None},
    "packed, muon, rotary": {},
}
# Sums of some thousand float64 terms, in another order.
CLOSE = {"rel": 1e-11, "abs": 1e-11}

both = pytest.mark.parametrize("accelerated", [False, True], ids=["plain", "fast"])


@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def small_batch():
    """Six pairs of falling lengths, which end in 2 and are padded with 0."""
    generator = torch.Generator().manual_seed(5)
    source = torch.randint(4, 40, (6, 9), generator=generator)
    target = torch.randint(4, 40, (6, 8), generator=generator)
    for i in range(6):
        source[i, 9 - i :], source[i, 8 - i] = 0, 2
        target[i, 8 - i :], target[i, 7 - i] = 0, 2
    return Batch(source, target)


def recorded_model(name):
    torch.manual_seed(3)
    changes = RECORD["models"][name]["changes"]
    return Transformer(TransformerConfig(**(SIZES | changes)))


@both
@pytest.mark.parametrize("name", RECORD["models"])
def test_losses_gradients_and_updates(name, accelerated):
    model, batch, expected = recorded_model(name), small_batch(), RECORD["models"][name]
    shapes = {key: list(value.shape) for key, value in model.state_dict().items()}
    assert shapes == expected["shapes"]
    criterion = Criterion(model, smoothing=0.1, bos_id=1)
    if accelerated:
        fast.accelerate(criterion)
    smoothed, plain = criterion(batch.source, batch.target)
    smoothed.backward()
    assert smoothed.item() == pytest.approx(expected["smoothed"], **CLOSE)
    assert plain.item() == pytest.approx(expected["plain"], **CLOSE)
    norms = {n: weight.grad.norm().item() for n, weight in model.named_parameters()}
    assert norms == pytest.approx(expected["gradients"], **CLOSE)
    config = TrainingConfig(
        model=model.config, steps=20, warmup_steps=5, fast=accelerated, device="cpu"
    )
    trainer = Trainer(config, model, bos_id=1)
    for step, sums in enumerate(expected["losses"], start=1):
        assert trainer.step(step, [batch]).tolist() == pytest.approx(sums, **CLOSE)
    model.eval()
    source = batch.source
    greedy = greedy_search(model, source, max_length=12, **ENDS)
    beam = beam_search(model, source, beam_size=4, **ENDS)
    lists = beam_search_n_best(model, source, beam_size=5, num_best=3, **ENDS)
    assert [h.tokens for h in greedy] == [tokens for tokens, _ in expected["greedy"]]
    assert [h.tokens for h in beam] == [tokens for tokens, *_ in expected["beam"]]
    assert [h.score for h in beam] == pytest.approx(
        [score for *_, score in expected["beam"]], **CLOSE
    )
    assert [[h.tokens for h in best] for best in lists] == [
        [tokens for tokens, _ in best] for best in expected["n_best"]
    ]


@both
@pytest.mark.parametrize("name", RUNS)
def test_a_whole_training_and_its_translations(name, accelerated, tmp_path):
    folder, expected = HERE / name.split(",")[0], RECORD["trainings"][name]
    config = TrainingConfig.from_dict(
        json.loads((folder / "config.json").read_text(encoding="utf-8"))
        | {"plain": not accelerated, "output": str(tmp_path / "run")}
    )
    result = train(config)
    log = [record for record in result.log if record["event"] != "begin"]
    wanted = [record for record in expected["log"] if record["event"] != "begin"]
    assert [r["event"] for r in log] == [r["event"] for r in wanted]
    for found, record in zip(log, wanted, strict=True):
        for key in ("step", "loss", "cross_entropy", "perplexity", "bleu"):
            if key in record:
                assert found[key] == pytest.approx(record[key], **CLOSE)
    lines = expected["lines"]
    outputs = translate(lines, result.model, result.tokenizer, beam_size=1)
    assert outputs == expected["greedy"]
    assert translate(lines, result.model, result.tokenizer) == expected["beam"]


@pytest.mark.parametrize("name", RUNS)
def test_a_saved_run_is_loaded_and_resumed(name, tmp_path):
    folder, expected = HERE / name.split(",")[0], RECORD["trainings"][name]
    run = shutil.copytree(folder, tmp_path / "run")
    model, tokenizer = load_translator(run)
    assert next(model.parameters()).dtype == torch.float64
    assert translate(expected["lines"], model, tokenizer) == expected["beam"]
    result = resume_training(run, steps=32)
    assert result.log[-1]["step"] == 32
