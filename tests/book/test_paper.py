"""The paper's published numbers agree with each other where they must."""

import inspect
import re
from pathlib import Path

import pytest
import yaml

from aiayn.inference import beam_search, beam_search_n_best, translate
from aiayn.model import TABLE_3_ROWS, TransformerConfig
from aiayn.training import TrainingConfig
from aiayn_book import paper

ROOT = Path(__file__).resolve().parents[2]


def test_table_3_has_the_rows_of_the_presets():
    """In the same order, under the same names."""
    assert list(paper.TABLE_3) == list(TABLE_3_ROWS)


@pytest.mark.parametrize(
    ("settings", "row"), [(paper.BASE, -2), (paper.BIG, -1)], ids=["base", "big"]
)
def test_table_2_prints_time_times_gpus_times_speed(settings, row):
    """The costs follow from §5.2 and §6.1, to the two digits printed."""
    speed = paper.TERAFLOPS["P100"] * 1e12
    cost = settings.training_hours * 3600 * settings.gpus * speed
    assert float(f"{cost:.1e}") == paper.TABLE_2[row].flops_en_de


def test_the_package_trains_as_the_paper_says():
    """What nobody sets, and what the recipe for the base model sets."""
    base = paper.BASE
    for config in (TrainingConfig(), TrainingConfig.base()):
        assert config.betas == (base.adam_beta_1, base.adam_beta_2)
        assert config.epsilon == base.adam_epsilon
        assert config.steps == base.steps
        assert config.warmup_steps == base.warmup_steps
        assert config.label_smoothing == base.label_smoothing
        assert config.tokens_per_batch == base.tokens_per_batch
        assert config.keep == base.averaged_checkpoints
        assert config.model.dropout == base.dropout
        # And what the paper does not have is off.
        assert (config.learning_rate_scale, config.clip_norm) == (1.0, None)
        assert (config.cooldown_steps, config.accumulate) == (0, 1)
    assert TrainingConfig.base().model == TransformerConfig.base()


@pytest.mark.parametrize("search", [translate, beam_search, beam_search_n_best])
def test_the_package_searches_as_the_paper_says(search):
    """Where nothing else is asked for: §6.1."""
    options = inspect.signature(search).parameters
    assert options["beam_size"].default == paper.BASE.beam
    assert options["length_penalty"].default == paper.BASE.length_penalty
    assert options["extra_length"].default == paper.BASE.extra_output_length


def test_one_head_costs_nine_tenths_of_a_point():
    """§6.2 says 0.9 BLEU, Table 3 prints the two scores."""
    heads = [result.bleu for row, result in paper.TABLE_3.items() if row[0] in "bA"]
    best = max(bleu for bleu in heads[:-1])
    assert best - paper.TABLE_3["A h=1"].bleu == pytest.approx(0.9)


def test_less_than_a_quarter_of_the_cost():
    """§6.1 compares with the best single model on English–French, MoE."""
    single = [r for r in paper.TABLE_2[:5] if r.bleu_en_fr]
    best = max(single, key=lambda result: result.bleu_en_fr)
    assert best.model == "MoE"
    assert paper.TABLE_2[-1].flops_en_fr < best.flops_en_fr / 4


def test_two_parsers_are_better_in_table_4():
    """§6.3 names one exception; this is the discrepancy 'better-than-all'."""
    ours = [r.f1 for r in paper.TABLE_4 if r.parser.startswith("Transformer")]
    better = [r.parser for r in paper.TABLE_4 if r.f1 > max(ours)]
    assert better == ["Luong et al. (2015)", "Dyer et al. (2016)"]


def test_discrepancies_name_a_chapter_of_the_book():
    """Each has an identifier of its own and a chapter that deals with it."""
    parts = yaml.safe_load((ROOT / "book" / "data" / "chapters.yml").read_text())
    names = {chapter["name"] for part in parts for chapter in part["chapters"]}
    found = paper.DISCREPANCIES
    assert {d.chapter for d in found} <= names
    assert {d.between for d in found} == {"versions", "text", "code"}
    assert len({d.id for d in found}) == len(found)


def test_discrepancies_say_where_to_look_them_up():
    """In the paper, by section, table or page, or in a linked file of the code."""
    for found in paper.DISCREPANCIES:
        in_paper = re.search(r"§\d|Table \d|arXiv|metadata", found.evidence)
        in_code = "](https://github.com/tensorflow/tensor2tensor/" in found.evidence
        assert in_paper or in_code, found.id
        assert in_code or found.between != "code", found.id
