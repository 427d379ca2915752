"""Chapter 20: drawings show what is measured, claims can fail, the text holds."""

import copy
import json
import re
from pathlib import Path

import pytest
import torch

from aiayn import Transformer, TransformerConfig
from aiayn.data.grammar import generate
from aiayn.data.grammar.relations import english_relations, german_relations
from aiayn_book.chapters import looking_inside as chapter
from aiayn_book.head_measures import held_out, relation_scores, tasks
from aiayn_book.head_scores import (
    SentenceWeights,
    attention_by_sentence,
    attention_of,
    best_offset,
    score_heads,
    uniform_baseline,
)
from aiayn_book.heads import BOS, KINDS, PAD, Words
from aiayn_book.plots import use_theme
from aiayn_book.records import load_record
from tests.book.chapters.drawings import check_words, texts
from tests.book.conftest import drawn

CLAIMS = Path(chapter.__file__).parents[1] / "claims.json"
VERDICTS = {c["id"]: c["verdict"] for c in json.loads(CLAIMS.read_text())}
RUNS = {str(run["seed"]): run for run in load_record("heads")["runs"]}
SAMPLES = generate(24, seed=3, kinds=KINDS)
WORDS = Words.of(SAMPLES)
BEFORE = chapter.Untrained(
    tasks=0, far=0.37, relevance={"top": 0.54, "uniform": 0.1, "offset": 0.1}
)


@pytest.fixture(autouse=True)
def _theme():
    use_theme()


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    config = TransformerConfig(
        vocab_size=len(WORDS.words),
        d_model=32,
        d_ff=64,
        num_heads=4,
        num_encoder_layers=2,
        num_decoder_layers=2,
        dropout=0.0,
    )
    return Transformer(config).eval()


@pytest.fixture(scope="module")
def seen(model):
    return attention_by_sentence(model, WORDS.pairs(SAMPLES), bos_id=BOS)


@pytest.fixture(scope="module")
def attribution(model):
    return chapter.source_attribution(model, SAMPLES[:10], WORDS)


def verdict(capsys, settle, *arguments):
    """What a settlement says in a terminal, and its verdict by claim."""
    settle(*arguments)
    text = capsys.readouterr().out
    names = re.findall(r"^Claim (\S+)", text, re.MULTILINE)
    found = re.findall(r"Verdict: (.*)$", text, re.MULTILINE)
    return dict(zip(names, found, strict=True))


# Drawings.


def test_the_picture_and_the_count_show_the_record():
    picture, count = chapter.picture_and_count(RUNS)
    check_words(picture)
    check_words(count)
    shown = [text for *_, text in texts(picture)]
    assert chapter._share(RUNS["4"]["reference"]["mass"]) in shown
    hits = [run["reference"]["hits"] for run in RUNS.values()]
    offset = RUNS["1"]["reference"]["offset"]
    # The caption: one is better than a fixed distance, five are not.
    assert [seed for seed in RUNS if RUNS[seed]["reference"]["hits"] > offset] == ["4"]
    dots = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', count.markup)]
    assert dots == pytest.approx([92 + 208 * share for share in hits], abs=0.1)


def test_hits_by_hand_are_those_of_the_library():
    """The drawing, the text's numbers, and `score_heads` on the same rows."""
    rows = list(chapter.BARK.values())
    tables = [torch.tensor([[[row] * len(row)]]) for row, _ in rows]
    gold = [[(len(row) - 1, subject)] for row, subject in rows]
    scores = score_heads(tables, gold)
    assert scores.hits.item() == pytest.approx(2 / 3)
    assert scores.mass.item() == pytest.approx(1.4 / 3)
    assert best_offset(gold) == (-1, pytest.approx(2 / 3))
    lengths = [len(row) for row, _ in rows]
    assert uniform_baseline(lengths, gold) == pytest.approx(7 / 18)
    drawing = chapter.score_by_hand()
    check_words(drawing)
    marks = [text for *_, text in texts(drawing) if text in "✓✗"]
    assert marks == ["✓", "✗", "✓", "✓", "✗", "✓"]  # hit, one back


@pytest.mark.parametrize("phone", [False, True])
def test_small_multiples_frame_every_map_and_the_gold_cells(phone):
    torch.manual_seed(0)
    weights = torch.rand(2, 4, 3, 5).softmax(dim=-1)
    rows, columns = ["eins", "zwei", "drei"], ["one", "two", "three", "four", "five"]
    drawing = chapter.head_maps(
        weights,
        rows,
        columns,
        gold=[(0, 1), (2, 4)],
        labels=[["10 %"] * 4, ["20 %"] * 4],
        title="Maps",
        phone=phone,
    )
    assert drawing.markup.count("stroke-width: 2.5") == 2 * 8
    assert drawing.markup.count("stroke-opacity: 0.55") == 8
    assert drawing.markup.count("fill-opacity=") == weights.numel()  # none is faint
    shown = [text for *_, text in texts(drawing)]
    assert {"1.1 · 10 %", "2.4 · 20 %"} <= set(shown)
    assert shown.count("eins") == (4 if phone else 2)
    assert shown.count("five") == (4 if phone else 8)  # above each layer's first maps
    if phone:
        assert drawing.width <= 360


def test_faint_cells_are_left_out():
    weights = torch.eye(4).expand(1, 2, 4, 4)
    drawing = chapter.head_maps(
        weights,
        list("abcd"),
        list("abcd"),
        gold=[],
        labels=[["", ""]],
        title="Maps",
    )
    assert drawing.markup.count("fill-opacity=") == 2 * 4


def test_example_sentences_are_chosen_by_rule():
    chosen = chapter.split_verb(SAMPLES)
    assert len(chosen.target_tokens) <= 8
    pairs = german_relations(chosen)["first half of the verb"]
    apart = max((late - early for late, early in pairs), default=0)
    for sample in SAMPLES:
        if len(sample.target_tokens) <= 8:
            others = german_relations(sample)["first half of the verb"]
            assert all(late - early <= apart for late, early in others)
    relative = generate(60, seed=2, kinds=["relative-subject"])
    assert chapter.relative_clause(relative).source_tokens[2] == "that"


def test_two_layers_by_hand():
    """The product in the text, and the shares that the drawing prints."""
    first = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 0, 1]])  # it attends to cow
    second = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 1, 0]])  # sick attends to it
    product = (torch.eye(3) + second) @ (torch.eye(3) + first) / 4
    assert product[2].tolist() == [0.25, 0.25, 0.5]
    drawing = chapter.two_layers()
    check_words(drawing)
    shown = {text for *_, text in texts(drawing)}
    assert {"½ it + ½ cow", "½ sick", "+ ¼ it + ¼ cow"} <= shown


# Charts and tables of the record.


def test_the_table_names_the_best_head(seen):
    scores, found = relation_scores(seen, SAMPLES), tasks(seen, SAMPLES)
    table = chapter.best_heads(scores, found).data.set_index("relation")
    assert len(table) == sum(map(len, scores.values()))
    hits = torch.tensor(scores["cross"]["alignment"]["hits"])
    layer, head = divmod(int(hits.argmax()), 4)
    best = table.loc["cross: alignment", "best head"].split("\N{NO-BREAK SPACE}")
    assert best == [f"{layer + 1}.{head + 1}:", f"{hits.max() * 100:.0f}", "%"]


def test_the_menu_offers_every_relation_and_each_has_every_head():
    spec = chapter.scores_chart(RUNS).to_dict()
    (menu,) = [p for p in spec["params"] if p["name"] == "relation_choice"]
    options = menu["bind"]["options"]
    assert len(options) == 13
    points = max(spec["datasets"].values(), key=len)
    for option in options:
        assert sum(row["relation"] == option for row in points) == 8 * len(RUNS)


def test_strips_put_kinds_below_each_other_and_baselines_in_the_middle():
    rows = [
        {"what": what, "kind": kind, "value": 0.5}
        for what in ("one", "two")
        for kind in ("effect", "weight", "best offset")
    ]
    spec = chapter.strips(
        rows, "share", description="Some points.", ticks=("best offset",)
    ).to_dict()
    places = [row["place"] for row in spec["data"]["values"]]
    assert places == [0.25, 0.75, 0.5, 1.25, 1.75, 1.5]


@pytest.mark.parametrize(
    "chart",
    [
        chapter.scores_chart(RUNS),
        chapter.determiner_chart(RUNS),
        chapter.long_chart(RUNS),
        chapter.pronoun_chart(RUNS),
    ],
)
def test_charts_draw(chart):
    assert "<svg" in drawn(chart)


def test_far_shares_are_sums_of_distances():
    """Five words that attend to all alike: few pairs are four words apart."""
    flat = torch.full((1, 2, 5, 5), 0.9)  # whatever it was, it is made even
    weights = SentenceWeights(encoder=flat, decoder=flat, cross=flat)
    assert chapter.uniform_far_share([weights]) == pytest.approx(2 / 25)
    assert chapter.far_share([[[0.5, 0.1, 0.1, 0.1, 0.15, 0.05]]]) == pytest.approx(0.2)


def test_pruning_counts_heads_while_nine_tenths_stay_right():
    rows, can_go = chapter.pruning(RUNS)
    assert can_go == [7, 4, 8, 6, 6, 6]
    whole = [row for row in rows if not row["heads taken out"]]
    assert all(row["share still right"] == 1 for row in whole)
    assert chapter.unnamed_but_missed(RUNS) == len(RUNS)


# Claims.


def test_the_record_gives_the_ledger_s_verdicts(capsys):
    found = verdict(capsys, chapter.settle_heads, RUNS, BEFORE, 400)
    found |= verdict(capsys, chapter.settle_long, RUNS)
    found |= verdict(capsys, chapter.settle_anaphora, RUNS)
    found |= verdict(capsys, chapter.settle_interpretable, RUNS, BEFORE)
    assert len(found) == 5
    assert found == {name: VERDICTS[name] for name in found}


def test_a_long_dependency_can_be_found(capsys):
    """One head that follows it, in one model, turns the verdict."""
    runs = copy.deepcopy(RUNS)
    runs["3"]["long"]["verb of the subject"] |= {"hits": 0.9, "offset": 0.5}
    with pytest.raises(AssertionError):  # the text would have to say so
        chapter.settle_long(runs)
    only = {"3": RUNS["3"]["long"]["verb of the subject"] | {"hits": 0.9}}
    assert chapter._follows(only["3"])
    assert not chapter._follows(only["3"] | {"shuffled": 0.85})


def test_two_heads_in_one_model_would_be_the_paper_s(capsys):
    assert sum(run["reference"]["heads"] for run in RUNS.values()) == 1  # the answer
    runs = copy.deepcopy(RUNS)
    runs["4"]["reference"]["heads"] = 2
    found = verdict(capsys, chapter.settle_anaphora, runs)
    assert found == {"figure4-anaphora": "reproduced at small scale"}


def test_the_head_for_pronouns_reaches_over_seven_words():
    """It hits more pronouns than stand two words behind their noun."""
    samples = held_out()["anaphora"][1::2]
    pairs = [english_relations(one)["antecedent of the pronoun"] for one in samples]
    away = [it - noun for ((it, noun),) in pairs]
    assert set(away) == {2, 7}
    score = RUNS["4"]["reference"]
    assert score["queries"] == len(away)
    far = score["hits"] * len(away) - away.count(2)
    assert far > 0.85 * away.count(7)


def test_an_untrained_model_that_passes_would_be_noticed():
    before = chapter.Untrained(tasks=1, far=0.4, relevance=BEFORE.relevance)
    with pytest.raises(AssertionError):
        chapter.settle_heads(RUNS, before, 400)


# Mixing and taking away.


def test_without_attention_each_position_depends_on_its_own_word(model):
    ids = WORDS.encode(SAMPLES[0].source_tokens)
    mixed = chapter.influence(model, ids, len(WORDS.words))
    assert mixed.sum(dim=-1).tolist() == pytest.approx([1.0] * len(ids))
    assert 0 < mixed.diagonal().mean() < 0.9
    cut = copy.deepcopy(model)
    for layer in range(2):
        projection = attention_of(cut, "encoder", layer).output_projection
        projection.weight.data.zero_()
    alone = chapter.influence(cut, ids, len(WORDS.words))
    assert torch.equal(alone, torch.eye(len(ids)))
    assert chapter.own_share(cut, SAMPLES[:3], WORDS) == 1.0


def test_the_own_share_can_be_asked_at_one_word(model):
    sample = SAMPLES[0]
    table = chapter.influence(
        model, WORDS.encode(sample.source_tokens), len(WORDS.words)
    )
    word = sample.source_tokens[1]
    at = sample.source_tokens.index(word)
    found = chapter.own_share(model, [sample], WORDS, word=word)
    assert found == pytest.approx(table[at, at].item())


def test_a_head_whose_output_is_zero_costs_nothing(model):
    """At zero, and at its mean, which W^O turns into nothing."""
    cut = copy.deepcopy(model)
    attention_of(cut, "cross", 1).output_projection.weight.data[:, :8] = 0.0
    assert attention_of(cut, "cross", 1).d_v == 8
    costs = chapter.head_costs(cut, WORDS.pairs(SAMPLES[:4]))
    assert len(costs) == 24
    silent = costs[20]
    assert (silent["what"], silent["head"]) == ("cross 2", 1)
    assert silent["zero"] == silent["mean"] == 0.0
    assert all(cost["zero"] != 0 for cost in costs if cost is not silent)
    assert "<svg" in drawn(chapter.cost_chart(costs, RUNS))


def test_agreement_of_two_ablations():
    costs = [{"zero": z, "mean": m} for z, m in ((1, 0.5), (2, 1.0), (3, 1.5))]
    assert chapter.agreement_of_costs(costs) == (0.5, pytest.approx(1.0))


def test_correlations_are_the_record_s(model):
    before = chapter.Untrained.of(model, SAMPLES, WORDS)
    table = chapter.correlation_table(RUNS, before).data
    assert list(table.index) == [*(f"model {seed}" for seed in RUNS), "untrained"]
    assert table.loc["model 4", "same word"] == RUNS["4"]["relevance"]["top"]


# How much each word owes to the source.


def test_padding_owes_nothing(attribution):
    """Every other token loses or gains something without its source."""
    padding = attribution.targets == PAD
    assert padding.any()
    for lost in (attribution.zeroed, attribution.exchanged):
        assert (lost[padding] == 0).all()
        assert (lost[~padding] != 0).all()


def test_a_word_that_is_hidden_where_there_is_none_changes_nothing(attribution):
    """Hiding padding leaves the source as it was."""
    padding = attribution.sources == PAD
    assert padding.any()
    assert (attribution.hidden[padding] == 0).all()


def test_each_token_is_of_one_kind(attribution):
    kinds = torch.stack(list(attribution.kinds().values()))
    assert (kinds.sum(dim=0) == (attribution.targets != PAD)).all()


def test_a_loss_that_follows_the_alignment_agrees_with_it(attribution):
    """The measure of agreement itself, on losses made from the gold pairs."""
    hidden, weights = attribution.hidden, attribution.weights
    attribution.hidden = torch.zeros_like(hidden)
    attribution.weights = torch.ones_like(weights)
    for k, sample in enumerate(attribution.samples):
        for i, j in sample.alignment:
            attribution.hidden[k, i, j] = 1.0
            attribution.weights[k, j, i] = 0.0
    found = attribution.agreement()
    attribution.hidden, attribution.weights = hidden, weights
    assert found["hidden"] == 1.0
    assert found["attention"] < 0.2
    assert 0 < found["chance"] < 1


def test_losses_by_kind_are_means_of_blocks(attribution):
    rows = attribution.lost_by_kind()
    assert len(rows) == 2 * 5 * chapter.BLOCKS
    (first,) = [
        row["value"]
        for row in rows
        if (row["what"], row["kind"], row["model"])
        == ("first word", "exchanged", "block 1")
    ]
    wanted = attribution.exchanged[:2, 0].clamp(min=0).mean().item()
    assert first == pytest.approx(wanted)
    assert "<svg" in drawn(chapter.lost_chart(attribution))
    assert "<svg" in drawn(chapter.hidden_word_chart(attribution, 0))
