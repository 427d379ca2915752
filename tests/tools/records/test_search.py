"""What chapter 17's record tries, and on which sentences."""

import shlex
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest

from aiayn.data import ParallelText
from aiayn.errors import InputError
from aiayn.inference import evaluate_bleu
from aiayn.training import TrainingConfig
from tools.records import search
from tools.records.search import PAPER, Setting


def test_one_thing_at_a_time_is_varied_around_the_papers_setting():
    """A beam is also tried without a penalty, and wide ones on a part."""
    settings = list(search.settings())
    assert settings[0] == PAPER == Setting(5, 4, 0.6, 50)
    assert len(settings) == len(set(settings))
    for setting in settings:
        changed = {k for k, v in asdict(setting).items() if v != getattr(PAPER, k)}
        assert len(changed - {"part"}) <= 1 or changed - {"part"} == {"beam", "alpha"}


def test_a_part_is_spread_over_all_sentences():
    lines = tuple(map(str, range(10)))
    text = ParallelText(lines, lines)
    assert search.every(text, 10) == text
    assert search.every(text, 4).source == ("0", "3", "6", "9")


def test_a_difference_lies_in_its_interval():
    references = ["ein Hund läuft durch den Schnee ."] * 30
    texts = [*references[:20], *["ein Hund läuft im Schnee ."] * 10]
    one = search.counts_13a(references, references)
    other = search.counts_13a(texts, references)
    middle, low, high = search.difference(one, other)
    assert 0 < low < middle < high
    assert middle == pytest.approx(
        100 - evaluate_bleu(texts, references).score, abs=1e-3
    )


def test_conventions_are_sacrebleus_scores():
    references = ["Ein Mann im T-Shirt, er läuft.", "Eine Frau und ein Kind."]
    texts = ["Ein mann im T-Shirt, er rennt.", "Eine Frau und ein Kind."]
    found = search.conventions(texts, references)
    assert found["13a"] == round(evaluate_bleu(texts, references).score, 3)
    assert found["13a, lower case"] > found["13a"]
    gain = found["13a, compounds split"] - found["13a"]
    assert found["splitting"][0] == pytest.approx(gain, abs=2e-3)
    assert found["hyphenated"] == 1


def test_counts_come_back_from_their_text():
    counts = np.arange(12).reshape(3, 4)
    assert search.compact(counts).split() == [str(i) for i in range(12)]


def test_a_command_asks_for_what_was_asked():
    """Quotes and all; folders above the runs are the machine's own affair."""
    loop = "for s in 1 2; do echo 'it' $s; done"
    words = ["runs/a", "runs/b c", "--trained-by", loop]
    given = search.arguments().parse_args(["/else/runs/a", *words[1:]])
    command = shlex.split(search.typed(given))
    assert command[:3] == ["python", "-m", "tools.records.search"]
    assert command[3:] == words


@pytest.mark.parametrize(
    "change", [{"digest": "2"}, {"target": "fr"}, {"corpus": "grammar"}]
)
def test_runs_that_cannot_write_together_are_refused(change, tmp_path, monkeypatch):
    """Before any of them is searched."""

    def run(**kept):
        kept = {"corpus": "m", "source": "en", "target": "de", "digest": "1"} | kept
        config = TrainingConfig.grammar(steps=1)
        config = replace(config, **{k: v for k, v in kept.items() if k != "digest"})
        tokenizer = SimpleNamespace(digest=kept["digest"])
        load = SimpleNamespace(from_dict=lambda _: config)
        monkeypatch.setattr(search, "TrainingConfig", load)
        monkeypatch.setattr(search, "read_json", lambda path: None)
        monkeypatch.setattr(search, "load_translator", lambda path: (None, tokenizer))
        text = ParallelText(("a",), ("b",))
        corpus = SimpleNamespace(validation=text, test=text)
        monkeypatch.setattr(search, "load_corpus", lambda *_, **__: corpus)
        return search.Run(tmp_path, 1, 1)

    for step in range(PAPER.averaged):
        (tmp_path / f"step-{step:06d}.safetensors").touch()
    search.require_one_task([run(), run()])
    with pytest.raises(InputError, match="another corpus, in another direction or"):
        search.require_one_task([run(), run(**change)])
