"""A run knows what it was made of: its corpus, its tokenizer, the version."""

import shutil
from dataclasses import replace
from typing import get_type_hints

import pytest

from aiayn import InputError, __version__, load_translator, resume_training, train
from aiayn.data import Tokenizer, load_corpus
from aiayn.model import TransformerConfig
from aiayn.model.choices import ModelChoices
from aiayn.storage import RunFolder, read_json, write_json
from aiayn.training import TrainingConfig
from aiayn.training.choices import TrainingChoices


@pytest.fixture
def run(config):
    return train(replace(config, steps=8)).run


def other_lines(folder, *names):
    """Turn the lines around: another corpus, of as many lines and the same words."""
    for path in folder.iterdir():
        if path.stem in names:
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text("".join(reversed(lines)), encoding="utf-8")


def test_a_run_s_file_says_where_its_corpus_lies_and_what_it_was(
    config, corpus_folder, monkeypatch
):
    monkeypatch.chdir(corpus_folder.parent)
    run = train(replace(config, corpus="corpus", steps=8)).run
    values = read_json(run.config)
    assert values["corpus"] == str(corpus_folder)
    assert values["version"] == __version__
    digests = values["digests"]
    assert digests.keys() == {"train", "validation", "test", "tokenizer"}
    assert digests["tokenizer"] == Tokenizer.load(run.tokenizer).digest
    assert digests["train"] == load_corpus(corpus_folder).train.digest
    assert len(set(digests.values())) == 4
    other = corpus_folder.parent / "elsewhere"
    other.mkdir()
    shutil.copytree(corpus_folder, other / "corpus")
    other_lines(other / "corpus", "train", "validation", "test")
    monkeypatch.chdir(other)
    log = resume_training(run, steps=16).log
    assert log[-1]["step"] == 16
    assert read_json(run.config) == values | {"steps": 16}


@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_corpus_that_has_changed_is_refused(run, corpus_folder, split):
    kept = {path: path.read_bytes() for path in run.path.iterdir()}
    before = read_json(run.config)["digests"][split]
    other_lines(corpus_folder, split)
    now = load_corpus(corpus_folder).split(split).digest
    with pytest.raises(InputError) as caught:
        resume_training(run, steps=16)
    for words in (split, str(corpus_folder), str(run.config), before[:12], now[:12]):
        assert words in str(caught.value)
    assert "give its new place as corpus=…" in str(caught.value)
    assert {path: path.read_bytes() for path in run.path.iterdir()} == kept
    other_lines(corpus_folder, split)
    assert resume_training(run, steps=16).log[-1]["step"] == 16


def test_the_same_lines_in_other_files_are_the_same_corpus(run, corpus_folder):
    for path in list(corpus_folder.iterdir()):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert resume_training(run, steps=16).log[-1]["step"] == 16


def test_a_corpus_that_has_moved_can_be_given(run, corpus_folder):
    moved = shutil.move(corpus_folder, corpus_folder.with_name("moved"))
    with pytest.raises(InputError) as caught:
        resume_training(run, steps=16)
    for words in (str(run.config), str(corpus_folder), "not there", "corpus=…"):
        assert words in str(caught.value)
    assert resume_training(run, steps=16, corpus=moved).log[-1]["step"] == 16
    assert read_json(run.config)["corpus"] == str(moved)
    other_lines(moved, "train")
    with pytest.raises(InputError, match="is not what this run was trained with"):
        resume_training(run, steps=24, corpus=moved)


def test_a_part_of_a_corpus_is_compared_with_that_part(config, corpus_folder):
    run = train(replace(config, corpus_size=100, steps=8)).run
    for language in ("en", "de"):
        with (corpus_folder / f"train.{language}").open("a") as file:
            file.write("one\n")
    assert resume_training(run, steps=16).log[-1]["step"] == 16


def test_another_tokenizer_is_refused(run, config):
    """Of as many entries: nothing else would tell."""
    text = load_corpus(config.corpus).validation
    size = Tokenizer.load(run.tokenizer).vocab_size
    before = read_json(run.config)["digests"]["tokenizer"]
    other = Tokenizer.train([*text.target, *text.source, "zwölf xyq"], size)
    other.save(run.tokenizer)
    for use in (lambda: resume_training(run, steps=16), lambda: load_translator(run)):
        with pytest.raises(InputError) as caught:
            use()
        for words in (str(run.tokenizer), before[:12], other.digest[:12]):
            assert words in str(caught.value)
        assert "Put back the one" in str(caught.value)


def test_a_lost_tokenizer_is_not_learned_anew(run):
    run.tokenizer.unlink()
    with pytest.raises(InputError, match=r"tokenizer\.model is missing.* put it back"):
        resume_training(run, steps=16)
    assert not run.tokenizer.exists()


def test_a_run_of_an_older_version_is_resumed_and_then_knows(run, corpus_folder):
    values = read_json(run.config)
    older = {k: v for k, v in values.items() if k not in ("version", "digests")}
    write_json(run.config, older)
    other_lines(corpus_folder, "test")
    assert resume_training(run, steps=16).log[-1]["step"] == 16
    assert read_json(run.config)["digests"].keys() == values["digests"].keys()


@pytest.mark.parametrize("place", ["config", "model"])
def test_an_unknown_key_names_the_file_and_the_version_that_wrote_it(run, place):
    values = read_json(run.config) | {"version": "9.9"}
    (values if place == "config" else values["model"])["new_choice"] = 1
    write_json(run.config, values)
    with pytest.raises(InputError) as caught:
        resume_training(run)
    for words in (str(run.config), "'new_choice'", "9.9", __version__):
        assert words in str(caught.value)


@pytest.mark.parametrize("values", [[], 3, None, {"steps": 1}, {"digests": 3}], ids=str)
def test_what_is_no_configuration_is_named(tmp_path, values):
    run = RunFolder(tmp_path)
    write_json(run.config, values)
    with pytest.raises(InputError) as caught:
        resume_training(run)
    assert f"{run.config} cannot be used" in str(caught.value)
    with pytest.raises(InputError, match="no training configuration"):
        TrainingConfig.from_dict(values)


def test_digests_that_are_none_refuse_nothing(run):
    for digests in (None, [], {}, 3):
        write_json(run.config, read_json(run.config) | {"digests": digests})
        load_translator(run)


@pytest.mark.parametrize("config", ["grammar", None, {"corpus": "grammar"}], ids=str)
def test_train_takes_a_configuration(config):
    with pytest.raises(InputError, match=r"train\(TrainingConfig\.grammar\(\)\)"):
        train(config)


@pytest.mark.parametrize(
    ("split", "called"), [("train", "training pairs"), ("validation", "validation p")]
)
def test_pairs_that_are_too_long_are_called_by_their_split(
    config, corpus_folder, split, called
):
    for path in corpus_folder.glob(f"{split}.*"):
        words = path.read_text(encoding="utf-8").split()
        path.write_text(" ".join(words[:30]) + "\n", encoding="utf-8")
    model = replace(config.model, vocab_size=50 if split == "validation" else 45)
    with pytest.raises(InputError, match=rf"All 1 {called}.* max_length=20 tokens"):
        train(replace(config, max_length=20, model=model))


def test_a_cell_that_is_run_twice_speaks_of_python(run, config):
    with pytest.raises(InputError) as caught:
        train(config)
    assert f'continue a run with resume_training("{run.path}")' in str(caught.value)
    assert "or choose another folder." in str(caught.value)


def test_a_recipe_s_keywords_are_typed_as_the_fields_are():
    """So that an editor knows them; the types stand in two places."""
    assert get_type_hints(TrainingChoices) == get_type_hints(TrainingConfig)
    assert get_type_hints(ModelChoices) == get_type_hints(TransformerConfig)
    for recipe in ("grammar", "multi30k", "base"):
        with pytest.raises(TypeError, match="step"):
            getattr(TrainingConfig, recipe)(step=3)
