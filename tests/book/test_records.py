"""Recorded runs: complete, repeatable by one command, and found by name."""

import math
import re
import shlex
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from importlib.util import find_spec

import pytest
import torch

from aiayn.cli import main
from aiayn.data.grammar import generate
from aiayn.errors import InputError
from aiayn.inference import translate
from aiayn.model import TABLE_3_ROWS, causal_mask
from aiayn.training import TrainingConfig
from aiayn_book import head_figures, head_measures, heads, scaling
from aiayn_book.head_scores import SentenceWeights, score_heads
from aiayn_book.live import EVERYDAY, SEARCH, load_live_model, load_quantised
from aiayn_book.parsing import SEEDS, SIZES, small_parser
from aiayn_book.records import load_record, repeats
from aiayn_book.table3 import miniature

NAMES = sorted(
    file.name.removesuffix(".json")
    for file in files("aiayn_book").joinpath("records").iterdir()
    if file.name.endswith(".json")
)
# What `aiayn train` wrote has its log; other records say what they hold instead.
TRAININGS = [name for name in NAMES if "log" in load_record(name)]


@pytest.mark.parametrize("name", NAMES)
def test_a_record_says_how_to_repeat_it(name):
    record = load_record(name)
    assert record["command"]
    for module in re.findall(r"python -m (\S+)", repeats(record)):
        assert find_spec(module), module
    commits = record["commits"] if "commits" in record else [record["commit"]]
    assert all(len(commit) == 40 for commit in commits)
    assert record["log" if name in TRAININGS else "runs"]


@pytest.mark.parametrize("name", NAMES)
def test_a_second_command_stands_only_where_it_differs(name):
    """`command` belongs to the commit; what repeats it today stands beside it."""
    record = load_record(name)
    assert record.get("repeat") != record["command"]
    assert repeats(record) == record.get("repeat", record["command"])


def test_an_option_is_not_in_a_command_that_ran_before_it_existed():
    """Packing came after these commits; today's default must be switched off."""
    for number in (1, 2, 3):
        record = load_record(f"multi30k-en-de-sorted-{number}")
        assert "--packed-length" not in record["command"]
        assert "--packed-length None" in repeats(record)


@pytest.mark.parametrize("name", TRAININGS)
def test_a_record_says_what_was_run_where_and_what_came_of_it(name):
    record = load_record(name)
    assert record["command"].startswith("aiayn ")
    assert len(record["commit"]) == 40
    begin, end = record["log"][0], record["log"][-1]
    assert begin["event"] == "begin"
    assert begin["machine"]["processor"]
    assert end["step"] == record["config"]["steps"]
    assert f"= {record['test']['bleu']:.2f} " in record["test"]["printed"]


@pytest.mark.parametrize("name", TRAININGS)
def test_a_record_s_configuration_can_still_be_read(name):
    config = TrainingConfig.from_dict(load_record(name)["config"])
    assert not config.output.is_absolute()


@pytest.mark.parametrize("name", TRAININGS)
def test_a_record_s_command_asks_for_what_was_run(name, monkeypatch):
    """Whatever the recipes have become since."""
    asked = []
    monkeypatch.setattr("aiayn.training.train", asked.append)
    for function in ("_tune_process", "_print_result"):
        monkeypatch.setattr(f"aiayn.cli.{function}", lambda _: None)
    record = load_record(name)
    monkeypatch.setattr("sys.argv", shlex.split(repeats(record)))
    main()
    ran = TrainingConfig.from_dict(record["config"])
    assert replace(asked[0], output=ran.output, progress=ran.progress) == ran


def test_the_everyday_model_is_on_record_as_it_is():
    """What was trained, on what and where; its weights are of that configuration."""
    record = load_record(EVERYDAY)
    assert record["search"] == SEARCH
    model = load_quantised(EVERYDAY)
    done = 0
    for run in record["runs"]:
        config = TrainingConfig.from_dict(run["config"])
        assert replace(config.model, dropout=0.0) == replace(model.config, dropout=0.0)
        begin, end = run["log"][0], run["log"][-1]
        assert begin["machine"]["processor"]
        assert begin["parameters"] == sum(w.numel() for w in model.weights().values())
        assert begin["step"] == done  # each training goes on where another ended
        done = end["step"]
        assert done == config.steps
    assert record["config"] == run["config"]
    for scores in (record["before"], record["after"]):
        assert f"= {scores['bleu']:.2f} " in scores["printed"]


def test_the_everyday_model_keeps_the_grammars_pronouns():
    """Other sentences of the grammar are right as often as those on record."""
    model, tokenizer = load_live_model(EVERYDAY)
    samples = generate(200, seed=11, split="combinations")
    sources = [one.source for one in samples]
    written = translate(sources, model, tokenizer, **SEARCH)
    right = sum(a == b.target for a, b in zip(written, samples, strict=True))
    share = load_record(EVERYDAY)["after"]["grammar_exact"]["combinations"]
    spread = math.sqrt(share * (1 - share) / len(samples))
    assert abs(right / len(samples) - share) < 4 * spread


def test_the_searches_can_be_compared_and_repeated():
    """Chapter 17 draws any number of runs; each begins with the paper's setting."""
    record = load_record("search")
    assert record["command"].startswith("python tools/record_search.py runs/")
    assert "aiayn train " in record["trained_by"]
    assert len(record["commit"]) == 40
    assert record["machine"]["processor"]
    names = [run["name"] for run in record["runs"]]
    together = [one["runs"] for one in record["ensembles"]]
    assert together == [names[:n] for n in range(2, len(names) + 1)]
    for run in record["runs"]:
        TrainingConfig.from_dict(run["config"])
        paper, *others = run["settings"]
        knobs = {"averaged": 5, "beam": 4, "alpha": 0.6, "extra": 50, "part": False}
        assert knobs.items() <= paper.items()
        assert {1, 2, 8, 16, 32} <= {row["beam"] for row in others}
        assert len(run["counts"]["reference"].split()) == paper["sentences"]
        assert f"= {run['test']['bleu']:.2f} " in run["test"]["printed"]


def test_the_optimizers_had_the_grammars_recipe():
    """Chapter 21 compares them: all but the optimizer and its rate is alike."""
    record = load_record("optimizers")
    config = TrainingConfig.from_dict(record["config"])
    recipe = TrainingConfig.grammar()
    own = ("output", "device", "threads", "validate_every", "progress")
    assert replace(config, **{name: getattr(recipe, name) for name in own}) == recipe
    found = Counter(
        (run["optimizer"], run["learning_rate_scale"], run["seed"])
        for run in record["runs"]
    )
    settings = (("adam", 0.5), ("adam", 1.0), ("muon", 1.0))
    assert found == Counter((*one, seed) for one in settings for seed in (1, 2, 3))
    for run in record["runs"]:
        steps = [step for step, _ in run["validation"]]
        assert steps == list(range(200, config.steps + 1, 200))
    assert len({str(run["machine"]) for run in record["runs"]}) == 1


def test_the_changes_had_two_rates_and_then_the_better_one():
    """Chapter 21 compares them: all variants of a seed saw the same batches."""
    record = load_record("changes")
    assert f"keeps {len(record['runs'])} of them" in record["note"]
    found = Counter(
        (run["variant"], run["rate"], run["seed"]) for run in record["runs"]
    )
    assert max(found.values()) == 1
    assert set(record["parameters"]) == {variant for variant, *_ in found}
    for variant in record["parameters"]:
        both = {
            rate: {s for v, r, s in found if (v, r) == (variant, rate)}
            for rate in (0.004, 0.008)
        }
        assert sorted(map(len, both.values())) == [2, 5]
    smallest, largest = (
        min(record["parameters"].values()),
        max(record["parameters"].values()),
    )
    assert largest / smallest < 1.01
    for run in record["runs"]:
        assert [step for step, _ in run["validation"]] == list(range(100, 801, 100))


def test_table_3_s_record_holds_runs_that_can_be_compared():
    """Any number of runs will do; base must be among them, and none twice."""
    record = load_record("table3")
    assert record["command"].startswith("python -m aiayn_book.table3")
    assert all(len(commit) == 40 for commit in record["commits"])
    config = TrainingConfig.from_dict(record["config"])
    found = [(run["row"], run["seed"]) for run in record["runs"]]
    assert len(found) == len(set(found))
    assert "base" in {row for row, _ in found} <= set(TABLE_3_ROWS)
    for run in record["runs"]:
        perplexity = math.exp(run["loss"])
        assert run["perplexity"] == pytest.approx(perplexity, rel=1e-3)
        assert config.steps == miniature(run["row"]).steps
        assert record["machines"][run["machine"]]["processor"]


def test_the_scaling_curve_has_every_size_with_every_seed():
    """Chapter 23 fits and resamples it: a missing point would pass unseen."""
    record = load_record("scaling")
    assert record["command"] == "python tools/record_scaling.py"
    assert len(record["commit"]) == 40
    assert record["machine"]["processor"]
    curve = Counter(
        (run["width"], run["seed"])
        for run in record["runs"]
        if run["steps"] == scaling.STEPS and run["rate"] == scaling.RATE
    )
    wanted = {(width, seed) for width in scaling.WIDTHS for seed in scaling.SEEDS}
    assert curve == Counter(wanted)


def test_chapter_20_s_heads_were_looked_at_in_six_seeds():
    """Every claim there says "in every seed": three would settle one too easily."""
    record = load_record("heads")
    seeds = [run["seed"] for run in record["runs"]]
    assert seeds == [1, 2, 3, 4, 5, 6]
    assert record["command"] == "python tools/record_heads.py 1 2 3 4 5 6"
    assert len(record["commit"]) == 40
    assert record["machine"]["processor"]
    config = TrainingConfig.from_dict(record["config"] | {"seed": 1})
    assert config == heads.configuration(1, config.model.vocab_size)


def test_chapter_20_s_uniform_baseline_is_of_the_keys_that_the_mask_permits():
    """It is the mass of a head that does look at all of them alike."""
    # The chapter's `held_out()["mixed"]`, without its sets that take longer to draw.
    samples = generate(heads.HELD_OUT, seed=20, split="test", kinds=heads.KINDS)

    def looks(sample):
        n, m = len(sample.source_tokens) + 1, len(sample.target_tokens) + 1
        masks = torch.ones(n, n), causal_mask(m), torch.ones(m, n)
        alike = (mask / mask.sum(dim=-1, keepdim=True) for mask in masks)
        return SentenceWeights(*(table.expand(1, 1, -1, -1) for table in alike))

    weights, gold = list(map(looks, samples)), heads.gold_of(samples)
    found = {
        (use, name): score["uniform"]
        for use, scores in head_measures.relation_scores(weights, samples).items()
        for name, score in scores.items()
    }
    for (use, name), uniform in found.items():
        mass = score_heads(heads.side(weights, use), gold[use][name]).mass.item()
        # A sum in float32 of at most n shares is off by n units of 2^-24 at most.
        shares = sum(map(len, gold[use][name]))
        assert uniform == pytest.approx(mass, rel=shares * 2**-24)
    bracket = head_figures.verb_bracket(weights, samples)
    assert bracket["uniform"] == pytest.approx(bracket["mass"], rel=17 * 2**-24)
    for run in load_record("heads")["runs"]:
        assert run["bracket"]["uniform"] == bracket["uniform"]
        for (use, name), uniform in found.items():
            assert run["scores"][use][name]["uniform"] == uniform


def test_an_unknown_record_is_answered_with_those_that_there_are():
    with pytest.raises(InputError, match=r"no record 'nothing'; there are .*multi30k"):
        load_record("nothing")


@pytest.mark.parametrize("name", ["parsing", "parsing-first"])
def test_a_parser_s_record_can_be_read_and_its_scores_are_possible(name):
    for run in load_record(name)["runs"]:
        config = TrainingConfig.from_dict(run["config"])
        assert not config.output.is_absolute()
        assert config.model.num_encoder_layers == config.model.num_decoder_layers == 4
        assert run["machine"]["processor"]
        for scores in run["scores"].values():
            rates = ("f1", "f1_unrepaired", "ill_formed")
            assert all(0 <= scores[rate] <= 1 for rate in rates)
            # An output with too few or too many tags is no tree.
            assert scores["wrong_tag_count"] <= scores["ill_formed"]


def test_parsers_of_every_size_have_every_seed_and_the_chapter_s_training():
    runs = load_record("parsing")["runs"]
    grammar = [run for run in runs if run["corpus"] == "grammar"]
    done = Counter((run["config"]["corpus_size"], run["seed"]) for run in grammar)
    assert done == Counter((size, seed) for size in SIZES for seed in SEEDS)
    for run in grammar:
        found = TrainingConfig.from_dict(run["config"])
        same = small_parser(
            corpus_size=found.corpus_size, seed=found.seed, output=found.output
        )
        assert found == same
    assert [run["corpus"] for run in runs].count("gum") == 1
