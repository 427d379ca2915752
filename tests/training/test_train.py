"""Whole trainings: they learn, stop, go on, and say what is wrong."""

import importlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from aiayn.data import (
    Batch,
    ParallelText,
    TokenBatches,
    Tokenizer,
    encode_pairs,
    load_corpus,
)
from aiayn.errors import InputError
from aiayn.inference import (
    exact_match_rate,
    load_translator,
    perplexity,
    translate,
)
from aiayn.model import Transformer, TransformerConfig
from aiayn.storage import RunFolder, load_tensors, read_json, write_json
from aiayn.training import (
    Trainer,
    TrainingConfig,
    noam_rate,
    resume_training,
    train,
)
from aiayn.training.preparation import prepare_data, short_pairs
from aiayn.training.processes import Processes
from aiayn.training.state import restore_training, training_state
from tests.training.number_words import leave_on_disk

# The module: `aiayn.training.train` is the function, as an attribute of its package.
TRAIN = importlib.import_module("aiayn.training.train")
VALIDATION = importlib.import_module("aiayn.training.validation")


def losses(run):
    """What a run's log says of its losses, without times."""
    return [
        {key: record[key] for key in ("step", "event", "loss") if key in record}
        for record in RunFolder(run).read_log()
    ]


def command(config, *words):
    """A command line that trains as the configuration says."""
    flags = differences(config, TrainingConfig.grammar())
    return [sys.executable, *words, "-m", "aiayn", "train", "grammar", *flags]


def differences(config, recipe, prefix=""):
    """The flags that turn the recipe into the configuration."""
    for field in fields(config):
        value, usual = getattr(config, field.name), getattr(recipe, field.name)
        name = prefix + field.name.replace("_", "-")
        if is_dataclass(value):
            yield from differences(value, usual, f"{name}.")
        elif isinstance(value, bool) and value != usual:
            yield f"--{name}" if value else f"--no-{name}"
        elif value != usual:
            yield from (f"--{name}", str(value))


def test_learns_to_count_and_leaves_a_folder_that_translates(config, monkeypatch):
    def exact(hypotheses, references):
        """In the place of BLEU, which counts four words in a row: here are three."""
        return SimpleNamespace(score=exact_match_rate(hypotheses, references))

    monkeypatch.setattr(VALIDATION, "evaluate_bleu", exact)
    config = replace(
        config,
        model=replace(config.model, d_model=32, d_ff=64, dropout=0.0),
        steps=300,
        warmup_steps=60,
        learning_rate_scale=0.3,  # so narrow a model's rate is high otherwise
        validate_every=20,
        validation_sentences=5,
    )
    result = train(config)
    model, tokenizer = load_translator(config.output)
    text = load_corpus(config.corpus).validation
    translations = translate(text.source, model, tokenizer, beam_size=1)
    assert translations == translate(text.source, result.model, tokenizer, beam_size=1)
    # Whoever knows the length and guesses the words is right in 1 of 7 lines at most.
    assert exact_match_rate(translations, text.target) > 0.5
    events = [record["event"] for record in result.log]
    assert events[0] == "begin"
    assert events[-1] == "average"
    assert {"train", "validation"} <= set(events)
    score = exact(translations[:5], text.target[:5]).score
    assert 0 < score == result.log[-1]["bleu"]
    assert result.log[-1]["perplexity"] == pytest.approx(
        math.exp(result.log[-1]["loss"])
    )


def test_keeps_the_best_and_the_last(config, monkeypatch):
    """Of losses 3, 1 and, in another process, 2: the second is not forgotten."""
    scores = iter([3.0, 1.0, 9.0, 2.0, 9.0])  # those of the two averages are 9
    for module in (TRAIN, VALIDATION):
        monkeypatch.setattr(
            module, "validation_scores", lambda *_: {"loss": next(scores)}
        )
    train(replace(config, steps=16))
    result = resume_training(config.output, steps=config.steps)
    names = {file.name for file in result.run.path.iterdir()}
    assert names == {
        "config.json",
        "tokenizer.model",
        "log.jsonl",
        "step-000016.safetensors",
        "step-000024.safetensors",
        "best.safetensors",
        "average.safetensors",
        "state.safetensors",
    }
    assert load_tensors(result.run.best)[1]["step"] == 16
    loaded, _ = load_translator(result.run.path, "auto")
    assert loaded.config == result.model.config
    for model in (result.model, loaded):
        assert not any(module.training for module in model.modules())
    with pytest.raises(InputError, match="device is one of auto, cpu, cuda"):
        load_translator(result.run.path, "gpu")
    assert TrainingConfig.from_dict(read_json(result.run.config)) == config


def test_the_log_holds_means_over_tokens_and_the_rate_of_its_step(config, monkeypatch):
    sums, step = [], Trainer.step

    def note(self, number, batches):
        sums.append(step(self, number, batches))
        return sums[-1]

    monkeypatch.setattr(Trainer, "step", note)
    result = train(replace(config, steps=5))
    [record] = [record for record in result.log if record["event"] == "train"]
    smoothed, plain, tokens = sum(sums).tolist()
    assert record["tokens"] == tokens
    assert record["loss"] == pytest.approx(smoothed / tokens)
    assert record["cross_entropy"] == pytest.approx(plain / tokens)
    rate = noam_rate(5, config.model.d_model, config.warmup_steps)
    assert record["learning_rate"] == pytest.approx(rate)


def test_the_last_score_is_the_averages_on_the_validation_sentences(
    config, monkeypatch
):
    """Not on those that it was trained on, and not that of the last checkpoint.

    BLEU is stood in for: of sentences so short it is 0, whatever is written.
    """
    asked = []

    def score(hypotheses, references):
        asked.append((hypotheses, references))
        return SimpleNamespace(score=float(len(asked)))

    monkeypatch.setattr(VALIDATION, "evaluate_bleu", score)
    result = train(replace(config, validation_sentences=7))
    average, _ = load_tensors(result.run.average)
    last, _ = load_tensors(result.run.checkpoints()[-1])
    for name, weight in result.model.state_dict().items():
        assert weight.equal(average[name])
        assert not weight.equal(last[name])
    kept = [load_tensors(path)[0] for path in result.run.checkpoints()]
    assert len(kept) == config.keep > 1
    for name, weight in average.items():  # of all that are kept, not of one
        mean = torch.stack([one[name] for one in kept]).double().mean(dim=0)
        torch.testing.assert_close(weight, mean.to(weight.dtype))
    text = load_corpus(config.corpus).validation
    pairs, _ = encode_pairs(text, result.tokenizer)
    batches = TokenBatches(pairs, config.tokens_per_batch).epoch(0)
    found = perplexity(result.model, batches, bos_id=result.tokenizer.bos_id)
    # Float32 sums over the same tokens in other batches.
    assert result.log[-1]["loss"] == pytest.approx(found.loss, rel=1e-5)
    few = text[:7]
    written = translate(few.source, result.model, result.tokenizer, beam_size=1)
    assert asked[-1] == (written, list(few.target))
    assert result.log[-1]["bleu"] == len(asked)


def test_same_seed_same_weights_other_seed_others(config, tmp_path):
    first = train(config).model.state_dict()
    again = train(replace(config, output=tmp_path / "again")).model.state_dict()
    other = train(replace(config, output=tmp_path / "other", seed=2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(
        first["encoder.layers.0.feed_forward.inner.weight"],
        other.model.state_dict()["encoder.layers.0.feed_forward.inner.weight"],
    )


@pytest.mark.parametrize(
    "choice", [{}, {"accumulate": 2}, {"optimizer": "muon"}], ids=str
)
def test_goes_on_bit_for_bit_after_an_error(config, tmp_path, monkeypatch, choice):
    config = replace(config, **choice)
    whole = train(replace(config, output=tmp_path / "whole"))
    step = Trainer.step

    def fail(self, number, batches):
        if number == 19:
            raise OSError(5, "Input/output error")
        return step(self, number, batches)

    monkeypatch.setattr(Trainer, "step", fail)
    with pytest.raises(OSError, match="Input/output"):
        train(config)
    monkeypatch.undo()
    resumed = resume_training(config.output)
    assert losses(config.output) == losses(tmp_path / "whole")
    expected = whole.model.state_dict()
    for name, tensor in resumed.model.state_dict().items():
        assert torch.equal(tensor, expected[name]), name


@pytest.mark.costly
def test_goes_on_bit_for_bit_after_a_kill(config, tmp_path):
    train(replace(config, output=tmp_path / "whole", steps=150))
    config = replace(config, steps=150)
    process = subprocess.Popen(command(config), stdout=subprocess.DEVNULL)
    state = RunFolder(config.output).state
    deadline = time.monotonic() + 120
    while not state.exists():
        assert process.poll() is None, "training ended before it could be killed"
        assert time.monotonic() < deadline, "training did not save its state in time"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert load_tensors(state)[1]["progress"]["step"] < 150
    resume_training(config.output)
    assert losses(config.output) == losses(tmp_path / "whole")


def test_a_state_that_is_taken_up_is_copied(config, tmp_path):
    """What was read may lie in the file still, and that is replaced by the next."""
    trainer = Trainer(config, Transformer(config.model), bos_id=1)
    tensors, counts = training_state(trainer)
    read = {name: tensor.clone() for name, tensor in tensors.items()}
    restore_training(trainer, read, counts, tmp_path / "state.safetensors")
    taken, _ = training_state(trainer)
    places = {tensor.data_ptr() for tensor in read.values()}
    assert places.isdisjoint(tensor.data_ptr() for tensor in taken.values())


@pytest.mark.costly
def test_ctrl_c_saves_the_step_and_says_how_to_go_on(config, tmp_path):
    train(replace(config, output=tmp_path / "whole", steps=150))
    config = replace(config, steps=150)
    process = subprocess.Popen(command(config), stderr=subprocess.PIPE, text=True)
    log = RunFolder(config.output)
    deadline = time.monotonic() + 120
    while not any(r["event"] == "train" for r in log.read_log()):
        assert process.poll() is None, "training ended before it could be stopped"
        assert time.monotonic() < deadline, "training did not log a step in time"
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert f"continue with 'aiayn resume {config.output}'" in said
    resume_training(config.output)
    assert losses(config.output) == losses(tmp_path / "whole")


@pytest.mark.costly
@pytest.mark.parametrize(
    "choice", [{}, {"packed_length": 40}, {"optimizer": "muon"}], ids=str
)
def test_two_processes_give_the_gradients_and_losses_of_one(config, tmp_path, choice):
    config = replace(
        config,
        model=replace(config.model, dropout=0.0),
        steps=6,
        log_every=1,
        validate_every=1,
        **choice,
    )
    train(replace(config, output=tmp_path / "one"))
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
    finished = subprocess.run(
        command(config, *launcher),
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"},
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    one, two = losses(tmp_path / "one"), losses(config.output)
    # Sums of about a hundred float32 terms, taken in another order.
    expected = [record["loss"] for record in one[1:]]
    assert [record["loss"] for record in two[1:]] == pytest.approx(expected, rel=1e-5)
    one, _ = load_tensors(RunFolder(tmp_path / "one").state)
    two, _ = load_tensors(RunFolder(config.output).state)
    # Adam's steps do not depend on the gradient's scale, but its mean does.
    largest = max(t.abs().max() for name, t in one.items() if name.startswith("mean."))
    for name in one:
        if name.startswith("mean."):
            torch.testing.assert_close(
                two[name], one[name], rtol=1e-3, atol=1e-5 * float(largest)
            )


def test_accumulated_batches_are_one_large_batch():
    torch.manual_seed(0)
    config = TrainingConfig.grammar(
        model=TransformerConfig.tiny(vocab_size=20, dropout=0.0),
        warmup_steps=1,
        device="cpu",
        precision="fp32",
    )
    rows = Batch(torch.randint(3, 20, (6, 5)), torch.randint(3, 20, (6, 4)))
    rows.target[0, 2:] = 0
    thirds = [Batch(rows.source[part], rows.target[part]) for part in _THIRDS]

    def moved(batches):
        torch.manual_seed(1)
        trainer = Trainer(config, Transformer(config.model).double(), bos_id=1)
        totals = trainer.step(1, batches)
        return totals, trainer.model.state_dict()

    torch.testing.assert_close(moved([rows]), moved(thirds))


_THIRDS = (slice(0, 1), slice(1, 3), slice(3, 6))


def test_a_corpus_without_validation_text_is_refused_at_once(config, monkeypatch):
    """Not when its vocabulary has been learned and all of its pairs are encoded."""
    for path in Path(config.corpus).glob("validation.*"):
        path.unlink()

    def learn(*_, **__):
        pytest.fail("It learned a vocabulary.")

    monkeypatch.setattr(Tokenizer, "train", learn)
    with pytest.raises(InputError, match="has no split 'validation'; it has train"):
        train(config)


def test_a_run_is_not_begun_over_another(config):
    train(config)
    with pytest.raises(InputError, match="holds a run or a model already: continue"):
        train(config)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.model", "log.jsonl"])
def test_files_that_no_training_wrote_are_not_lost(config, name):
    """As of another library's model, or of a tokenizer that was saved beforehand."""
    config.output.mkdir()
    (config.output / name).write_text('{"hidden_size": 4096}')
    with pytest.raises(InputError, match="holds a run or a model already"):
        train(config)
    [kept] = config.output.iterdir()
    assert kept.read_text() == '{"hidden_size": 4096}'


def test_a_run_that_came_to_no_checkpoint_may_be_begun_again(config, monkeypatch):
    def fail(*_):
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", fail)
        with pytest.raises(RuntimeError):
            train(config)
    assert train(config).log[-1]["step"] == config.steps


def test_a_step_at_which_a_training_was_stopped_may_be_its_last(config, monkeypatch):
    """What was saved there is no checkpoint yet: Ctrl-C saves the state only."""
    step = Trainer.step

    def interrupted(self, number, batches):
        if number == 12:
            signal.raise_signal(signal.SIGINT)
        return step(self, number, batches)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(config)
    assert resume_training(config.output, steps=12).log[-1]["step"] == 12
    run = RunFolder(config.output)
    saved, _ = load_tensors(run.checkpoints()[-1])
    assert run.checkpoints()[-1].stem == "step-000012"
    state, _ = load_tensors(run.state)
    for name, weight in saved.items():
        torch.testing.assert_close(weight, state[f"model.{name}"], rtol=0, atol=0)
    log = run.read_log()
    resume_training(config.output, steps=12)  # nothing is left to do
    assert len(run.read_log()) == len(log)


def test_there_must_be_something_to_resume(tmp_path):
    with pytest.raises(InputError, match=r"There is no file .*config\.json"):
        resume_training(tmp_path)


def test_a_diverged_loss_stops_and_keeps_the_last_good_state(config, monkeypatch):
    step = Trainer.step

    def explode(self, number, batches):
        totals = step(self, number, batches)
        return totals * math.nan if number == 18 else totals

    monkeypatch.setattr(Trainer, "step", explode)
    with pytest.raises(InputError, match=r"diverged: the loss, .* after step 20\."):
        train(config)
    assert load_tensors(RunFolder(config.output).state)[1]["progress"]["step"] == 16


def test_a_log_cut_off_in_mid_line_can_be_read(config):
    train(config)
    run = RunFolder(config.output)
    records = run.read_log()
    with run.log.open("a") as log:
        log.write(json.dumps({"step": 25})[:-3])
    assert run.read_log() == records


def test_nothing_of_the_process_is_different_afterwards(config, monkeypatch):
    """Threads, random numbers, signals; also if a step fails."""
    seen = []

    def note(self, number, batches):
        seen.append(torch.get_num_threads())
        torch.manual_seed(number)
        if number == 2:
            raise OSError
        return torch.ones(3)

    def state():
        handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
        return torch.get_num_threads(), torch.get_rng_state().tolist(), handlers

    before = state()
    monkeypatch.setattr(Trainer, "step", note)
    with pytest.raises(OSError):  # noqa: PT011
        train(replace(config, threads=2))
    assert state() == before
    train(replace(config, threads=2, steps=1, output=config.output / "other"))
    assert state() == before
    assert seen == [2] * 3
    assert before[0] == 1


def test_a_run_keeps_the_precision_that_it_began_with(config, monkeypatch):
    """Another machine, on which 'auto' would be another one, may resume it."""
    dtypes = []

    def note(self, number, batches):
        dtypes.append(self.dtype)
        return torch.ones(3)

    monkeypatch.setattr(Trainer, "step", note)
    monkeypatch.setattr(TRAIN, "resolve_precision", lambda *_: torch.bfloat16)
    run = train(replace(config, precision="auto", steps=8)).run
    assert read_json(run.config)["precision"] == "bf16"
    kept = {"bf16": torch.bfloat16, "auto": torch.float32}
    monkeypatch.setattr(TRAIN, "resolve_precision", lambda name, _: kept[name])
    log = resume_training(run, steps=9).log
    assert set(dtypes) == {torch.bfloat16}
    assert len(dtypes) == 9
    assert read_json(run.config)["precision"] == "bf16"
    assert log[0]["precision"] == "bfloat16"


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_model_is_validated_in_the_precision_of_its_training(config, precision):
    """Its loss, and what greedy search writes."""
    config = replace(config, precision=precision, steps=8, validation_sentences=3)
    data = prepared(config)
    trainer = Trainer(config, Transformer(config.model), bos_id=1)
    dtypes = []
    trainer.model.encoder.layers[0].feed_forward.inner.register_forward_hook(
        lambda *call: dtypes.append(call[2].dtype)
    )
    scores = VALIDATION.validation_scores(trainer, data)
    assert scores.keys() == {"loss", "perplexity", "bleu"}
    assert len(dtypes) > 1
    assert set(dtypes) == {trainer.dtype}
    assert (
        str(trainer.dtype)
        == {"fp32": "torch.float32", "bf16": "torch.bfloat16"}[precision]
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_trains_on_a_gpu(config, precision, optimizer):
    choices = {"precision": precision, "optimizer": optimizer}
    result = train(replace(config, device="cuda", **choices))
    assert math.isfinite(result.log[-1]["loss"])
    assert next(result.model.parameters()).is_cuda


def test_the_rate_is_the_paper_s_until_the_cooldown_and_then_falls_to_zero(config):
    """Four steps of cooldown after six: 4/5, 3/5, 2/5, 1/5 of equation (3)."""
    config = replace(config, steps=10, warmup_steps=3, learning_rate_scale=2.0)
    cooled = replace(config, cooldown_steps=4)
    model = Transformer(config.model)
    usual, falling = (Trainer(c, model, bos_id=1) for c in (config, cooled))
    for step in range(1, 11):
        rate = 2 * noam_rate(step, config.model.d_model, 3)
        assert usual.learning_rate(step) == pytest.approx(rate)
        share = min(1.0, (11 - step) / 5)
        assert falling.learning_rate(step) == pytest.approx(share * rate)


def test_plain_and_fast_training_are_one(config, tmp_path, monkeypatch):
    """The same losses but for rounding: dropout draws differ, so there is none."""
    config = replace(config, model=replace(config.model, dropout=0.0), steps=8)
    folders = tmp_path / "fast", tmp_path / "plain"
    forms, step = set(), Trainer.step

    def note(self, number, batches):
        forms.add(type(self.model) is Transformer)
        return step(self, number, batches)

    monkeypatch.setattr(Trainer, "step", note)
    for folder, plain in zip(folders, (False, True), strict=True):
        train(replace(config, output=folder, fast=not plain))
        assert forms == {plain}
        forms.clear()
    fast, plain = (
        [record["loss"] for record in losses(folder) if "loss" in record]
        for folder in folders
    )
    assert len(fast) > 2
    # Sums of about a hundred float32 terms, taken in another order.
    assert fast == pytest.approx(plain, rel=1e-5)


def test_a_cooldown_longer_than_the_training_takes_all_of_it(config):
    config = replace(config, steps=3, warmup_steps=1, cooldown_steps=1500)
    trainer = Trainer(config, Transformer(config.model), bos_id=1)
    for step, share in ((1, 3 / 4), (2, 2 / 4), (3, 1 / 4)):
        rate = share * noam_rate(step, config.model.d_model, 1)
        assert trainer.learning_rate(step) == pytest.approx(rate)


def prepared(config):
    """What a training on the configuration would read."""
    run = RunFolder(config.output)
    write_json(run.config, config.as_dict())
    return prepare_data(config, run, Processes())


def test_the_vocabulary_is_learned_from_both_languages(config):
    tokenizer = prepared(config).tokenizer
    for side in load_corpus(config.corpus).train[:50]:
        assert not any(tokenizer.unk_id in ids for ids in tokenizer.encode_batch(side))


def test_a_parser_writes_a_symbol_a_piece(config, corpus_folder):
    for split in ("train", "validation", "test"):
        count = len((corpus_folder / f"{split}.en").read_bytes().splitlines())
        (corpus_folder / f"{split}.trees").write_text("(NP XX )NP\n" * count)
    model = replace(config.model, vocab_size=40)
    tokenizer = prepared(replace(config, target="trees", model=model)).tokenizer
    assert tokenizer.pieces(tokenizer.encode("(NP")) == ["▁(NP"]


def test_another_seed_trains_on_other_batches(config):
    one, other = (prepared(replace(config, seed=n)).training.plan(0) for n in (1, 2))
    assert [rows.tolist() for rows in one] != [rows.tolist() for rows in other]


@pytest.mark.parametrize(("accumulate", "count"), [(1, 24), (2, 4 * 9 + 4 * 2)])
def test_every_epoch_has_its_own_batches_and_each_of_them_once(
    config, monkeypatch, accumulate, count
):
    """Two batches a step make five of an epoch, the last of a single one."""
    seen, step = [], Trainer.step

    def note(self, number, batches):
        seen.extend(batch.source.tolist() for batch in batches)
        return step(self, number, batches)

    monkeypatch.setattr(Trainer, "step", note)
    train(replace(config, accumulate=accumulate))
    batches = prepared(config).training
    assert len(batches) == 9
    epochs = [batch for number in range(5) for batch in batches.epoch(number)]
    assert seen == [batch.source.tolist() for batch in epochs[:count]]


def test_a_part_of_a_corpus_is_its_beginning(config):
    data = prepared(replace(config, corpus_size=100))
    assert data.description["pairs"] == 100


def test_a_gpu_validates_with_larger_batches(config):
    """No gradient is kept there. The batches to train on are the same."""
    prepared(config)
    on_cpu, on_gpu = (
        prepare_data(
            config, RunFolder(config.output), Processes(device=torch.device(kind))
        )
        for kind in ("cpu", "cuda")
    )
    assert len(on_gpu.training) == len(on_cpu.training)
    assert len(on_cpu.validation) > len(on_gpu.validation) == 1


@pytest.mark.parametrize("fewer", [0, 1])
def test_what_is_translated_is_as_short_as_what_is_learned(fewer):
    tokenizer = Tokenizer.train(["a b c"], 8)
    text = ParallelText(("a", "a b"), ("a", "a"))
    most = len(tokenizer.encode("a b")) + 1 - fewer  # with its end
    assert len(short_pairs(text, tokenizer, most)) == 2 - fewer
    assert len(encode_pairs(text, tokenizer, most)[0]) == 2 - fewer


def test_one_process_fetches_a_corpus_before_the_others(config, monkeypatch):
    """All at once, they would remove the parts of WMT 2014 under each other."""
    seen = []

    def loading(*words, **options):
        seen.append("loads")
        return load_corpus(*words, **options)

    monkeypatch.setattr("aiayn.training.preparation.load_corpus", loading)
    monkeypatch.setattr(Processes, "wait", lambda self: seen.append("waits"))
    run = RunFolder(config.output)
    write_json(run.config, config.as_dict())
    prepare_data(config, run, Processes(rank=0, world_size=2))
    assert seen[:2] == ["loads", "waits"]
    seen.clear()
    prepare_data(config, run, Processes(rank=1, world_size=2))
    assert seen[:2] == ["waits", "loads"]


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        ({"steps": 1e5}, "steps must be a whole number, at least 1, not 100000.0."),
        ({"keep": 0}, "keep must be a whole number, at least 1, not 0."),
        ({"corpus_size": 1e5}, "corpus_size must be a whole number, at least 1, not 1"),
        ({"seed": None}, "seed must be a whole number, at least 0, not None."),
        ({"seed": -1}, "seed must be a whole number, at least 0, not -1."),
        ({"cooldown_steps": -1}, "cooldown_steps must be a whole number, at least 0, "),
        ({"validation_sentences": True}, "validation_sentences must be a whole number"),
        ({"packed_length": 0}, "packed_length must be a whole number, at least 1, not"),
        (
            {"learning_rate_scale": -0.5},
            "learning_rate_scale must be a number",
        ),
        (
            {"learning_rate_scale": "2"},
            "learning_rate_scale must be a number",
        ),
        ({"epsilon": None}, "epsilon must be a number, at least 0, not None."),
        (
            {"clip_norm": "1"},
            "clip_norm must be a number, at least 0, not '1'",
        ),
        ({"clip_norm": 0.0}, "clip_norm must be larger than 0, or None"),
        (
            {"label_smoothing": math.nan},
            "label_smoothing must be a number",
        ),
        ({"label_smoothing": 10}, "label_smoothing is 10, and not < 1."),
        ({"precision": "fp16"}, "precision must be one of fp32, bf16, auto, not 'fp16"),
        ({"optimizer": "sgd"}, "optimizer must be one of adam, muon, not 'sgd'."),
        ({"optimizer": None}, "optimizer must be one of adam, muon, not None."),
        ({"betas": (0.9, 1.0)}, "betas must be two numbers in [0, 1), not (0.9, 1.0)."),
        ({"betas": 0.9}, "betas must be two numbers in [0, 1), not 0.9."),
        ({"betas": ("a", 0.1)}, "betas must be two numbers in [0, 1), not ('a', 0.1)."),
        ({"fast": "false"}, "fast must be a bool, not 'false'."),
        ({"compile": 1}, "compile must be a bool, not 1."),
        ({"model": "tiny"}, "model must be a TransformerConfig, not 'tiny'."),
        ({"device": torch.device("cpu")}, "device must be a str, not device("),
        ({"source": None}, "source must be a str, not None."),
        ({"corpus": None}, "corpus must be a str, not None."),
        ({"output": None}, "output must be a Path, not None."),
        ({"betas": (0.9,)}, "betas must be two numbers in [0, 1), not (0.9,)."),
    ],
)
def test_a_choice_that_makes_no_sense_gets_a_sentence(
    config, choice, sentence, unchecked_shapes
):
    """Before the training, and not in the middle of it."""
    with pytest.raises(InputError) as caught:
        replace(config, **choice)
    assert str(caught.value).startswith(sentence)


def test_a_corpus_may_be_a_path(config, unchecked_shapes):
    by_path = replace(config, corpus=Path(config.corpus))
    assert TrainingConfig.from_dict(by_path.as_dict()) == config


def test_the_defaults_are_the_papers_base_training():
    config = TrainingConfig()
    assert (config.corpus, config.model) == ("wmt14", TransformerConfig.base())
    own = {"precision": "bf16", "compile": True}
    assert TrainingConfig.base() == replace(config, **own)


@pytest.mark.parametrize("plain", [True, False])
def test_a_configuration_of_the_first_edition_is_read(config, plain):
    """There, `plain` meant what is now `fast=False`."""
    values = config.as_dict()
    assert values.pop("fast")
    read = TrainingConfig.from_dict(values | {"plain": plain})
    assert read == replace(config, fast=not plain)


def test_a_model_that_would_learn_from_padding_is_refused(config):
    with pytest.raises(
        InputError, match=r"model\.pad_id is 3, but the tokenizer's is 0"
    ):
        train(replace(config, model=replace(config.model, pad_id=3)))


@pytest.mark.parametrize(
    "lengths", [{"max_length": 13}, {"max_length": 12, "packed_length": 13}], ids=str
)
def test_rows_longer_than_a_table_of_positions_are_refused(config, lengths):
    """At once, and not when the first of them comes."""
    model = replace(config.model, positions="learned", max_length=12)
    with pytest.raises(InputError, match=r"12 learned positions, and rows .* 13 token"):
        train(replace(config, model=model, **lengths))
    config = replace(config, model=model, max_length=12, validation_sentences=2)
    assert "bleu" in train(config).log[-1]


def test_rows_longer_than_a_batch_are_refused(config):
    with pytest.raises(InputError, match="do not fit into tokens_per_batch=20"):
        train(replace(config, packed_length=40, tokens_per_batch=20))


def test_packed_rows_hold_the_same_pairs_in_fewer_places(config, tmp_path):
    padded = train(config).log[0]["data"]
    config = replace(config, output=tmp_path / "packed", packed_length=60)
    packed = train(config).log[0]["data"]
    for same in ("pairs", "too_long", "target_tokens"):
        assert packed[same] == padded[same]
    assert packed["padding_share"] < padded["padding_share"]


@pytest.mark.parametrize("max_length", [256, 2048])
def test_a_long_validation_sentence_ends_no_training(config, corpus_folder, max_length):
    """It is left out, of BLEU as of the loss, or as long as the training allows."""
    for language, word in (("en", "one"), ("de", "eins")):
        path = corpus_folder / f"validation.{language}"
        lines = path.read_text(encoding="utf-8")
        path.write_text(f"{word} " * 1100 + "\n" + lines, encoding="utf-8")
    sizes = {"max_length": max_length, "tokens_per_batch": max_length}
    config = replace(config, steps=8, validation_sentences=3, **sizes)
    assert "bleu" in train(config).log[-1]


@pytest.mark.parametrize("packed_length", [None, 40])
def test_a_corpus_on_disk_trains_as_one_in_memory_and_is_encoded_once(
    config, monkeypatch, tmp_path, packed_length
):
    config = replace(config, packed_length=packed_length)
    expected = train(config)
    leave_on_disk(config.corpus, tmp_path, monkeypatch)
    own = replace(config, output=tmp_path / "large")
    assert losses(train(own).run.path) == losses(expected.run.path)
    pairs = sorted(own.output.glob("pairs.*.npy"))
    assert len(pairs) == 4
    for path in pairs:
        os.utime(path, (0, 0))
    resume_training(own.output, steps=own.steps + 1)
    assert {path.stat().st_mtime for path in pairs} == {0}
