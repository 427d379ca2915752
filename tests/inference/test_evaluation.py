"""§6.1: BLEU as sacreBLEU prints it, perplexity by closed forms."""

import math
import subprocess
import sys
import threading
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from torch.testing import assert_close

from aiayn.data import Batch
from aiayn.errors import InputError
from aiayn.inference import evaluate_bleu, exact_match_rate, perplexity
from aiayn.inference.hypothesis import eval_mode
from tests.inference.models import (
    BOS,
    random_recurrent,
    random_source,
    random_transformer,
)

HYPOTHESES = [
    "Ein Hund läuft über die Wiese.",
    "Zwei Männer spielen „Schach“ im Park, glaube ich.",
    "eine frau liest",
]
REFERENCES = [
    "Ein Hund rennt über die Wiese.",
    "Zwei Männer spielen Schach im Park.",
    "Eine Frau liest",
]


@pytest.mark.parametrize(
    ("options", "arguments"),
    [({}, []), ({"lowercase": True, "tokenize": "intl"}, ["-lc", "-tok", "intl"])],
)
def test_bleu_is_what_sacrebleu_prints(options, arguments, tmp_path):
    hypotheses, references = tmp_path / "hypotheses", tmp_path / "references"
    hypotheses.write_text("\n".join(HYPOTHESES) + "\n", encoding="utf-8")
    references.write_text("\n".join(REFERENCES) + "\n", encoding="utf-8")
    files = [references, "-i", hypotheses]
    command = [sys.executable, "-m", "sacrebleu", *files, "-f", "text", "-w", "2"]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, encoding="utf-8", check=True
    )
    found = evaluate_bleu(HYPOTHESES, REFERENCES, **options)
    assert found.text == str(found) == done.stdout.strip()
    assert found.signature in found.text
    assert f" = {found.score:.2f} " in found.text


def test_bleu_by_hand():
    # Precisions 3/4, 2/3, 1/2; no 4-gram of one: smoothed to 1 / (2·1). No brevity.
    found = evaluate_bleu(["a b c e"], ["a b c d"])
    assert found.score == pytest.approx(100 * (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** 0.25)
    assert evaluate_bleu(["a b c d"], ["a b c d"]).score == pytest.approx(100)


def test_the_exact_match_rate():
    assert exact_match_rate(HYPOTHESES, REFERENCES) == 0
    assert exact_match_rate([*HYPOTHESES, "x"], [*REFERENCES, "x"]) == 0.25


@pytest.mark.parametrize("score", [evaluate_bleu, exact_match_rate])
def test_what_cannot_be_scored(score):
    with pytest.raises(InputError, match="1 hypotheses and 3 references"):
        score(["a"], REFERENCES)
    with pytest.raises(InputError, match="give at least one"):
        score([], [])
    with pytest.raises(InputError, match="list of sentences"):
        score("a", ["a"])


def test_an_unknown_tokenizer_of_sacrebleu():
    with pytest.raises(InputError, match="no tokenizer 'moses'; it has 13a"):
        evaluate_bleu(["a"], ["a"], tokenize="moses")


@pytest.mark.skipif(find_spec("MeCab") is not None, reason="MeCab is installed")
def test_a_tokenizer_of_sacrebleu_that_needs_another_package():
    with pytest.raises(InputError, match="'ja-mecab' cannot work: Japanese"):
        evaluate_bleu(["a"], ["a"], tokenize="ja-mecab")


def batches(*all_lengths):
    for seed, lengths in enumerate(all_lengths):
        yield Batch(
            random_source([3] * len(lengths), seed=seed),
            random_source(lengths, seed=100 + seed),
        )


@pytest.mark.parametrize("make", [random_transformer, random_recurrent])
def test_a_model_that_knows_nothing_has_the_vocabulary_as_perplexity(make):
    model = make(vocab_size=9)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    found = perplexity(model, batches([4, 2], [1]), bos_id=BOS)
    assert found.perplexity == pytest.approx(9, rel=1e-12)
    assert found.loss == pytest.approx(math.log(9), rel=1e-12)
    assert found.tokens == 4 + 2 + 1


@pytest.mark.parametrize("make", [random_transformer, random_recurrent])
def test_perplexity_is_the_mean_over_tokens_not_over_sentences(make, monkeypatch):
    monkeypatch.setattr("aiayn.inference.evaluation._POSITIONS", 2)  # several parts
    model = make()
    found = perplexity(model, batches([5, 1, 3], [2, 2]), bos_id=BOS)
    total, tokens = 0.0, 0
    model.eval()
    for batch in batches([5, 1, 3], [2, 2]):
        for source, target in zip(batch.source, batch.target, strict=True):
            previous = BOS
            written = []
            for token in target[target != 0].tolist():
                written.append(previous)
                with torch.no_grad():
                    logits = model(source[None], torch.tensor([written]))[0, -1]
                total -= logits.log_softmax(-1)[token].item()
                tokens, previous = tokens + 1, token
    assert found.tokens == tokens
    # Sums of a dozen float64 terms of size ten.
    assert_close(found.loss, total / tokens, rtol=0, atol=1e-10)
    assert found.perplexity == math.exp(found.loss)


def test_perplexity_leaves_the_model_as_it_was_and_uses_no_dropout():
    model = random_transformer(dropout=0.5).train()
    first, second = (perplexity(model, batches([5, 4]), bos_id=BOS) for _ in range(2))
    assert first == second
    assert model.training


def test_perplexity_without_end():
    model = random_transformer()
    project = model.logits
    model.logits = lambda states: 1e6 * project(states)
    found = perplexity(model, batches([5, 4]), bos_id=BOS)
    assert found.loss > 1000
    assert found.perplexity == math.inf


def test_perplexity_of_packed_rows_is_refused():
    """Each would be taken for one sentence, and the number would be wrong."""
    [batch] = batches([3, 4])
    with pytest.raises(InputError, match="rows are packed"):
        perplexity(random_transformer(), [replace(batch, packed=True)], bos_id=BOS)


def test_perplexity_of_nothing():
    with pytest.raises(InputError, match="no target tokens"):
        perplexity(random_transformer(), [], bos_id=BOS)


def test_threads_may_share_a_model_in_evaluation():
    """No block puts it back into training while another thread still searches."""
    model = random_transformer().eval()
    began, may_end = threading.Event(), threading.Event()

    def evaluate():
        with eval_mode(model):
            began.set()
            may_end.wait(10)

    thread = threading.Thread(target=evaluate)
    thread.start()
    began.wait(10)
    with eval_mode(model):
        may_end.set()
        thread.join()
        assert not any(module.training for module in model.modules())
    assert not any(module.training for module in model.modules())
