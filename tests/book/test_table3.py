"""Table 3 in miniature: its rows by one rule, and a command that can be stopped."""

import math
import subprocess
from types import SimpleNamespace

import pytest
import torch

from aiayn.data import TokenBatches, encode_pairs, load_corpus
from aiayn.errors import InputError
from aiayn.inference import perplexity, translate
from aiayn.model import TABLE_3_ROWS, TransformerConfig
from aiayn.storage import read_json
from aiayn.training.preparation import short_pairs
from aiayn_book import table3
from aiayn_book.table3 import choose_rows, miniature, miniature_model, run_table3
from tests.training.number_words import write_numbers

TABLE_E = "E learned positions"
# What makes a run a matter of a second; the same for every row.
TINY = {"steps": 3, "warmup_steps": 2, "tokens_per_batch": 256}


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Settings for a corpus of numbers, whose pieces are few."""
    small = miniature_model

    def few_pieces(row):
        return table3.replace(small(row), vocab_size=60)

    monkeypatch.setattr(table3, "miniature_model", few_pieces)
    return TINY | {"corpus": str(write_numbers(tmp_path / "corpus"))}


@pytest.mark.parametrize("row", TABLE_3_ROWS)
def test_a_row_keeps_the_paper_s_proportions(row):
    paper, small = TransformerConfig.table3(row), miniature_model(row)
    base, small_base = TransformerConfig.base(), miniature_model("base")
    for size in ("d_model", "d_ff", "num_encoder_layers", "num_decoder_layers"):
        paper_factor = getattr(paper, size) / getattr(base, size)
        assert getattr(small, size) / getattr(small_base, size) == paper_factor
    assert (small.num_heads, small.dropout) == (paper.num_heads, paper.dropout)
    assert small.positions == paper.positions
    paper_share = (paper.d_k or paper.d_model // paper.num_heads) / paper.d_model
    assert (small.d_k or small.d_model // small.num_heads) / small.d_model == (
        paper_share
    )


@pytest.mark.parametrize(
    "use", [choose_rows, lambda name: next(run_table3("nowhere", name, [1]))]
)
def test_one_name_is_no_list_of_rows(use, unchecked_shapes):
    with pytest.raises(InputError, match=r"give \['base'\]"):
        use("base")


def test_the_training_differs_between_rows_only_where_the_table_says_so():
    base = miniature("base").as_dict()
    for row in TABLE_3_ROWS:
        config = miniature(row).as_dict()
        differs = {name for name in base if base[name] != config[name]} - {"model"}
        smoothed = row.startswith("D label_smoothing")
        assert differs == ({"label_smoothing"} if smoothed else set())
    assert miniature("D label_smoothing=0.0").label_smoothing == 0.0
    assert miniature("D label_smoothing=0.2").label_smoothing == 0.2


def test_rows_are_chosen_by_name_or_letter_in_the_table_s_order():
    assert choose_rows([]) == list(TABLE_3_ROWS)
    assert choose_rows(["E", "base", "A h=4"]) == ["base", "A h=4", TABLE_E]
    with pytest.raises(InputError, match=r"no row 'F'.*A h=16"):
        choose_rows(["F"])


def test_a_run_says_what_it_was_and_what_came_of_it(tiny, tmp_path):
    (run,) = run_table3(str(tmp_path / "runs"), ["B d_k=16"], [5], **tiny)
    assert (run["row"], run["seed"]) == ("B d_k=16", 5)
    assert run["config"]["model"]["d_k"] == 2
    assert run["config"]["steps"] == 3
    assert run["perplexity"] == pytest.approx(math.exp(run["loss"]))
    # A word is at least one piece, so it is harder to guess.
    assert run["word_perplexity"] >= run["perplexity"]
    # Three steps teach little: no better than all, not much worse than nothing.
    assert 1 < run["loss"] < 2 * math.log(60)
    assert run["pairs"] == 20
    assert run["machine"]["processor"]
    assert run["cpu_seconds"] > 0


def test_scores_are_of_validation_pairs_and_of_as_many_training_pairs(
    tiny, tmp_path, monkeypatch
):
    """Of short ones alone. BLEU is stood in for: of these it is 0, whatever is said."""
    asked = []

    def score(*texts):
        asked.append(texts)
        return SimpleNamespace(score=12.5)

    monkeypatch.setattr(table3, "evaluate_bleu", score)
    config = miniature("base", output=tmp_path / "run", max_length=8, **tiny)
    result = table3.train(config)
    scores = table3.score_variation(result, config)
    corpus, tokenizer = load_corpus(config.corpus), result.tokenizer
    text = short_pairs(corpus.validation, tokenizer, 8)
    assert 0 < len(text) == scores["pairs"] < 20
    seen = short_pairs(corpus.train, tokenizer, 8, len(text))
    for name, kind in (("loss", text), ("training_loss", seen)):
        batches = TokenBatches(encode_pairs(kind, tokenizer)[0], 1000).epoch(0)
        found = perplexity(result.model, batches, bos_id=tokenizer.bos_id)
        # Float32 sums over the same tokens in other batches.
        assert scores[name] == pytest.approx(found.loss, rel=1e-5)
    written = translate(
        text.source, result.model, tokenizer, beam_size=4, length_penalty=0.6
    )
    assert asked == [(written, list(text.target))]
    assert scores["bleu"] == 12.5


def test_a_seed_decides_everything(tiny, tmp_path):
    (one,) = run_table3(tmp_path / "one", ["base"], [1], **tiny)
    torch.rand(3)  # whatever was drawn before does not count
    (again,) = run_table3(tmp_path / "again", ["base"], [1], **tiny)
    (other,) = run_table3(tmp_path / "other", ["base"], [2], **tiny)
    assert again["loss"] == one["loss"] != other["loss"]


def test_a_stopped_table_keeps_its_runs_and_goes_on(tiny, tmp_path, monkeypatch):
    rows, seeds, train, done = ["base", "C N=2"], [1, 2], table3.train, []
    folder = tmp_path / "runs"

    def stop_in_the_third(config):
        done.append(config)
        if len(done) == 3:  # as `train` ends when Ctrl-C comes between two steps
            raise KeyboardInterrupt("Stopped after step 2: continue with …")
        return train(config)

    with monkeypatch.context() as stopping:
        stopping.setattr(table3, "train", stop_in_the_third)
        with pytest.raises(KeyboardInterrupt, match=r"'base', seed 2.*goes on"):
            list(run_table3(folder, rows, seeds, **tiny))
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(kept) == {"base-1.json", "c-n-2-1.json"}

    trained = []
    monkeypatch.setattr(table3, "train", lambda c: trained.append(c) or train(c))
    runs = list(run_table3(folder, rows, seeds, **tiny))
    assert [(run["row"], run["seed"]) for run in runs] == [
        ("base", 1),
        ("C N=2", 1),
        ("base", 2),
        ("C N=2", 2),
    ]
    assert [config.seed for config in trained] == [2, 2]
    assert all((folder / name).read_bytes() == kept[name] for name in kept)
    assert runs[0] == read_json(folder / "base-1.json")


def test_runs_of_other_settings_are_not_mixed(tiny, tmp_path):
    list(run_table3(tmp_path, ["base"], [1], **tiny))
    with pytest.raises(InputError, match=r"base-1\.json .*other settings"):
        list(run_table3(tmp_path, ["base"], [1], **tiny | {"steps": 4}))


@pytest.mark.parametrize("content", ["{}", "[]", "3"])
def test_a_file_that_is_no_run_is_named(content, tiny, tmp_path):
    (tmp_path / "base-1.json").write_text(content)
    with pytest.raises(InputError, match=r"base-1\.json is no run"):
        next(run_table3(tmp_path, ["base"], [1], **tiny))


def test_the_commit_is_not_that_of_whoever_installed_the_package(tmp_path, monkeypatch):
    """Their repository holds the package, but ignores it."""
    (tmp_path / ".gitignore").write_text("site-packages\n")
    for words in ("init", "add .", "-c user.name=a -c user.email=a@b commit -m x"):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True)
    installed = tmp_path / "site-packages/table3.py"
    installed.parent.mkdir()
    installed.touch()
    monkeypatch.setattr(table3, "__file__", str(installed))
    assert table3._commit() is None


def test_a_folder_that_is_a_file_is_refused_before_a_run(tiny, tmp_path):
    (tmp_path / "text.en").write_text("a dog")
    with pytest.raises(InputError, match=r"text\.en cannot be written: "):
        next(run_table3(tmp_path / "text.en", ["base"], [1], **tiny))


def test_the_command_prints_a_line_a_run(tiny, tmp_path, monkeypatch, capsys):
    usual = table3.miniature
    monkeypatch.setattr(
        table3, "miniature", lambda row, **changes: usual(row, **TINY | changes)
    )
    words = ["--rows", "C N=2", "E", "--seeds", "1", "--steps", "2"]
    places = ["--output", str(tmp_path / "runs"), "--corpus", tiny["corpus"]]
    monkeypatch.setattr("sys.argv", ["table3", *words, *places])
    table3.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["row", "seed", "perplexity", "BLEU", "CPU", "seconds"]
    assert [line[:20].strip() for line in lines[1:]] == ["C N=2", TABLE_E]
