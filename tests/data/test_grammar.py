"""The embedded corpus: what must hold for any sample, and for the splits."""

import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from random import Random

import pytest
from jaxtyping import config

from aiayn.data.grammar import (
    KINDS,
    SPLITS,
    GrammarSample,
    detokenise,
    generate,
    generate_pairs,
    german,
    held_out_combinations,
    load_grammar,
)
from aiayn.data.grammar.draw import Draw
from aiayn.data.grammar.english import BE, third_person
from aiayn.data.grammar.nouns import BY_NAME, NOUNS
from aiayn.data.grammar.sample import words_of
from aiayn.data.grammar.sentences import derive
from aiayn.data.grammar.splits import split_of
from aiayn.data.grammar.verbs import VERBS
from aiayn.data.grammar.words import ADJECTIVES
from aiayn.errors import InputError
from aiayn.parsing import Tree

CASES = ("nom", "acc", "dat", "gen")
FINITE = frozenset({"VVFIN", "VAFIN", "VMFIN"})
DATIVE_ONLY = frozenset({"mit", "von", "vom", "zu", "zum", "zur", "im", "am"})
ACCUSATIVE_ONLY = frozenset({"über", "ins", "ans"})
WRONGLY_SPACED = ("  ", " ,", " .", " ?", ",,", ",.", " 's")


@contextmanager
def unchecked() -> Iterator[None]:
    """Without the checks of every call's types, which would take most of the time."""
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def corpus() -> dict[str, list[GrammarSample]]:
    with unchecked():
        return dict(load_grammar())


@pytest.fixture(scope="module")
def samples(corpus) -> list[GrammarSample]:
    """Some thousands, of which a ninth have held-out combinations."""
    return corpus["train"][:8000] + corpus["combinations"]


def subtrees(tree: Tree) -> list[Tree]:
    found = [tree]
    for subtree in found:
        found.extend(child for child in subtree.children if isinstance(child, Tree))
    return found


def tags(tree: Tree) -> list[str]:
    """The part-of-speech tags in the order of the words."""
    if tree.is_preterminal:
        return [tree.label]
    return [tag for child in tree.children for tag in tags(child)]


# The parts of a sample fit together


def test_leaves_are_the_tokens(samples) -> None:
    for sample in samples:
        assert sample.source_tree.leaves == sample.source_tokens
        assert sample.target_tree.leaves == sample.target_tokens


def test_sentences_are_written_as_one_writes_them(samples) -> None:
    for sample in samples:
        for text, tokens in (
            (sample.source, sample.source_tokens),
            (sample.target, sample.target_tokens),
        ):
            assert text == detokenise(tokens)
            assert text[0].isupper()
            assert text[-1] in ".?"
            found = [wrong for wrong in WRONGLY_SPACED if wrong in text]
            assert not found, text


def test_lengths_are_between_two_and_about_twenty_words(samples) -> None:
    lengths = [len(sample.source.split()) for sample in samples]
    assert min(lengths) == 2
    assert 16 <= max(lengths) <= 24
    assert len(set(lengths)) > 12


def test_every_token_is_aligned_unless_it_has_no_counterpart(samples) -> None:
    instruments = ("piano", "guitar", "violin")
    for sample in samples:
        source, target = sample.source_tokens, sample.target_tokens
        assert all(0 <= i < len(source) for i, _ in sample.alignment)
        assert all(0 <= j < len(target) for _, j in sample.alignment)
        for i in set(range(len(source))) - {i for i, _ in sample.alignment}:
            assert source[i] == "the", sample
            assert source[i + 1] in instruments, sample
        for j in set(range(len(target))) - {j for _, j in sample.alignment}:
            assert target[j] == ",", sample


def test_final_marks_align_with_each_other_alone(samples) -> None:
    for sample in samples:
        last = len(sample.source_tokens) - 1, len(sample.target_tokens) - 1
        assert [p for p in sample.alignment if p[0] == last[0] or p[1] == last[1]] == [
            last
        ]


# Agreement, recomputed from the trees


@cache
def noun_readings(form: str) -> frozenset[tuple[str, str]]:
    """The (case, gender) that a noun's form can be; gender p is the plural."""
    return frozenset(
        (case, "p" if plural else noun.gender)
        for noun in NOUNS
        for plural in (False, True)
        for case in CASES
        if german.noun_form(noun, case, plural) == form
    )


STEMS = (
    "d",
    "ein",
    "kein",
    "mein",
    "unser",
    "sein",
    "ihr",
    "dies",
    "jed",
    "viel",
    "einig",
)
ALL = frozenset((case, gender) for case in CASES for gender in "mfnp")


@cache
def adjective_readings(form: str, determiner: str) -> frozenset[tuple[str, str]]:
    """The (case, gender) that an adjective's form can be after this determiner."""
    stems = [a.stem for a in ADJECTIVES if form.startswith(a.stem)]
    return frozenset(
        reading
        for reading in ALL
        for stem in stems
        if german.adjective_form(stem, determiner, *reading) == form
    )


@cache
def phrase_readings(words: tuple[tuple[str, str], ...], preposition: str) -> frozenset:
    """The (case, gender) that determiner, adjectives and noun agree on."""
    first = words[0][1].lower()
    contracted = {short: d for (_, d), short in german.CONTRACTIONS.items()}
    article = contracted.get(preposition, first)
    stems = [
        stem
        for stem in STEMS
        if any(german.determiner_form(stem, *reading) == article for reading in ALL)
    ]
    readings = ALL
    if stems:
        stem = stems[0]
        readings &= {r for r in ALL if german.determiner_form(stem, *r) == article}
    else:
        stem = ""
    for tag, text in words:
        if tag == "ADJA" and text not in ("letzte", "letztes", "nächste"):
            readings &= adjective_readings(text.lower(), stem)
        elif tag == "NN":
            readings &= noun_readings(text[0].upper() + text[1:])
    return readings


def test_article_adjectives_and_noun_agree_in_a_case_that_the_preposition_takes(
    samples,
) -> None:
    checked = 0
    for sample in samples:
        for parent in subtrees(sample.target_tree):
            for position, phrase in enumerate(parent.children):
                if not isinstance(phrase, Tree) or phrase.label != "NP":
                    continue
                words = tuple((c.label, c.leaves[0]) for c in phrase.children)
                nouns = [text for tag, text in words if tag == "NN"]
                if not nouns or not noun_readings(nouns[0][0].upper() + nouns[0][1:]):
                    continue  # no noun of its own, or an adverbial: jeden Tag
                preposition = ""
                if parent.label == "PP" and position:
                    preposition = parent.leaves[0].lower()
                readings = phrase_readings(words, preposition)
                if preposition in DATIVE_ONLY:
                    readings &= {r for r in ALL if r[0] == "dat"}
                elif preposition in ACCUSATIVE_ONLY:
                    readings &= {r for r in ALL if r[0] == "acc"}
                elif preposition and preposition != "als":
                    readings &= {r for r in ALL if r[0] in ("acc", "dat")}
                assert readings, (sample.target, words, preposition)
                checked += 1
    assert checked > 8000


def core(phrase: Tree) -> Tree:
    """The noun phrase without what modifies it from behind."""
    while isinstance(phrase.children[0], Tree) and phrase.children[0].label == "NP":
        if phrase.children[0].leaves[-1] == "'s":
            break
        phrase = phrase.children[0]
    return phrase


def is_plural(phrase: Tree) -> bool:
    head = [child for child in core(phrase).children if isinstance(child, Tree)][-1]
    return head.label == "NNS" or head.leaves[0].lower() in ("we", "they")


def ordered_preterminals(tree: Tree) -> list[Tree]:
    if tree.is_preterminal:
        return [tree]
    return [t for child in tree.children for t in ordered_preterminals(child)]


def test_english_verbs_agree_with_their_subjects_at_any_distance(samples) -> None:
    singular = {third_person(verb.base) for verb in VERBS} | {
        "wants",
        "is",
        "was",
        "does",
    }
    checked = far = 0
    for sample in samples:
        words = ordered_preterminals(sample.source_tree)
        for subject, index in clauses_of(sample):
            label, text = words[index].label, sample.source_tokens[index].lower()
            if label in ("VBZ", "VBP") or text in BE:
                assert (text in singular) != is_plural(subject), sample.source
                checked += 1
                far += len(subject.leaves) > 4
    assert checked > 2000
    assert far > 100


def test_german_verbs_agree_with_the_subject_that_the_alignment_names(samples) -> None:
    plurals = {forms[1] for forms in german.AUXILIARIES.values()}
    singulars = {forms[0] for forms in german.AUXILIARIES.values()}
    for verb in VERBS:
        for forms, plural in ((singulars, False), (plurals, True)):
            form = german.finite_form(verb, plural)
            forms |= {form, verb.prefix + form}
    assert not plurals & singulars
    checked = 0
    for sample in samples:
        target_tags = tags(sample.target_tree)
        for subject, index in clauses_of(sample):
            found = [
                sample.target_tokens[j].lower()
                for i, j in sample.alignment
                if i == index and target_tags[j] in FINITE
            ]
            assert len(found) == 1, (sample.source, found)
            expected = plurals if is_plural(subject) else singulars
            assert found[0] in expected, (sample.source, sample.target)
            checked += 1
    assert checked > 4000


def clauses_of(sample: GrammarSample) -> list[tuple[Tree, int]]:
    """(subject's noun phrase, index of the finite verb) of every English clause."""
    found = []

    def walk(node: Tree, start: int) -> int:
        if node.is_preterminal:
            return start + 1
        starts = [start]
        for child in node.children:
            starts.append(walk(child, starts[-1]))
        labels = [child.label for child in node.children]
        parts = list(zip(node.children, starts, strict=False))
        if node.label == "S" and {"NP", "VP"} <= set(labels):
            verb = parts[labels.index("VP")]
            subject = node.children[labels.index("VP") - 1]
        elif node.label == "SQ" and "NP" in labels:
            verb, subject = parts[0], node.children[1]
        elif (
            node.label == "NP" and labels[-1] == "SBAR" and is_subject_gap(parts[-1][0])
        ):
            verb, subject = parts[-1], node.children[0]
        else:
            return starts[-1]
        found.append((subject, verb[1] + finite_offset(verb[0])))
        return starts[-1]

    walk(sample.source_tree, 0)
    return found


def is_subject_gap(clause: Tree) -> bool:
    return [child.label for child in clause.children[-1].children] == ["VP"]


def finite_offset(phrase: Tree) -> int:
    """Words of the phrase before its finite verb."""
    words = ordered_preterminals(phrase)
    return next(
        i for i, t in enumerate(words) if t.label in ("VBZ", "VBP", "VBD", "MD")
    )


# German word order


def test_the_finite_verb_is_last_in_subordinate_clauses(samples) -> None:
    checked = 0
    for sample in samples:
        for node in subtrees(sample.target_tree):
            if node.label != "SBAR":
                continue
            labels = [child.label for child in node.children[-1].children]
            place = next(i for i, label in enumerate(labels) if label in FINITE)
            assert set(labels[place + 1 :]) <= {"SBAR", "$,"}, sample.target
            checked += 1
    assert checked > 1000


def test_the_finite_verb_is_second_in_statements_and_first_in_questions(
    samples,
) -> None:
    seen = Counter()
    for sample in samples:
        root = sample.target_tree
        clauses = [c for c in root.children if c.label == "S"] or [root]
        for clause in clauses:
            labels = [child.label for child in clause.children]
            place = next(i for i, label in enumerate(labels) if label in FINITE)
            expected = 1
            if labels[:2] == ["SBAR", "$,"]:
                expected = 2
            elif root.label == "SQ":
                expected = 0
            assert place == expected, sample.target
            seen[labels[0]] += 1
    assert min(seen[label] for label in ("NP", "PP", "ADVP", "SBAR", "VVFIN")) > 20


def test_participles_infinitives_and_prefixes_end_their_clause(samples) -> None:
    for sample in samples:
        for node in subtrees(sample.target_tree):
            labels = [c.label for c in node.children if isinstance(c, Tree)]
            for label in ("VVPP", "VVINF", "VAINF"):
                if label in labels:
                    assert labels.index(label) == len(labels) - 1, sample.target
                    assert node.label == "VP"
            if "PTKVZ" in labels:
                rest = labels[labels.index("PTKVZ") + 1 :]
                assert set(rest) <= {"SBAR", "$,", "$."}, sample.target


def test_german_clauses_are_set_off_by_commas(samples) -> None:
    for sample in samples:
        tokens = sample.target_tokens
        starts = clause_starts(sample.target_tree)
        for start in starts:
            assert start == 0 or tokens[start - 1] == ",", sample.target


def clause_starts(tree: Tree, start: int = 0) -> list[int]:
    found = [start] if tree.label == "SBAR" else []
    for child in tree.children:
        if isinstance(child, Tree):
            found += clause_starts(child, start)
            start += len(child.leaves)
    return found


def test_it_has_the_gender_of_what_is_said_of_it(samples) -> None:
    """Feelings are said of the eater, faults of what is eaten."""
    feelings = {"tired", "sick"}
    pronouns = {"m": "er", "f": "sie", "n": "es"}
    checked = Counter()
    for sample in samples:
        source = sample.source_tokens
        if "eat" not in source or "it" not in source or "because" not in source:
            continue
        adjective = source[-2]
        nouns = [BY_NAME[SINGULAR[token]] for token in source if token in SINGULAR]
        of_eater = adjective in feelings
        antecedent = nouns[0] if of_eater else nouns[1]
        after = sample.target_tokens[sample.target_tokens.index("weil") + 1]
        assert after == pronouns[antecedent.gender], sample
        checked[of_eater, antecedent.gender] += 1
    assert len(checked) == 6, checked


# Determinism and translation


def test_one_english_sentence_has_one_german_translation() -> None:
    rng = Random(5)
    seen: dict[str, str] = {}
    repeated = 0
    with unchecked():
        for _ in range(50_000):
            _, (english, german) = derive(Draw(rng, combine=False))
            source, target = (
                " ".join(word[1] for word in words_of(draft))
                for draft in (english, german())
            )
            repeated += source in seen
            assert seen.setdefault(source, target) == target
    assert repeated > 500, "too few repetitions for a conflict to show"


def test_the_same_seed_gives_the_same_samples_and_a_longer_list_begins_alike() -> None:
    assert generate(60, seed=4)[:30] == generate(30, seed=4)


def test_every_process_draws_the_same() -> None:
    """Nothing hangs on how this one hashes text, which Python draws anew each time."""
    script = (
        "from aiayn.data.grammar import generate_pairs\n"
        "splits = [generate_pairs(5, seed=4, split=s) for s in ('train', 'test')]\n"
        "print(ascii(splits))"
    )
    other = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONHASHSEED": "71"},
        capture_output=True,
        text=True,
        check=True,
    )
    here = [generate_pairs(5, seed=4, split=split) for split in ("train", "test")]
    assert other.stdout == f"{here!a}\n"


@pytest.mark.parametrize("split", SPLITS)
def test_pairs_alone_are_those_of_the_samples(split):
    samples = generate(300, seed=5, split=split)
    pairs = generate_pairs(300, seed=5, split=split)
    assert pairs == [(sample.source, sample.target) for sample in samples]


def test_another_seed_or_split_gives_other_samples() -> None:
    lists = [generate(50, seed=s, split=split) for s in (0, 1) for split in SPLITS]
    sources = [{sample.source for sample in found} for found in lists]
    assert all(len(found) == 50 for found in sources)
    for index, found in enumerate(sources):
        assert all(len(found & other) < 10 for other in sources[:index])


# Splits


@pytest.mark.parametrize("seed", [0, 7])
def test_splits_are_disjoint_whatever_the_seed(corpus, seed: int) -> None:
    train = {sample.source for sample in corpus["train"]}
    for split in SPLITS[1:]:
        with unchecked():
            held_out = generate(400, seed=seed, split=split)
        assert not train & {sample.source for sample in held_out}


def test_the_split_follows_from_the_english_sentence_alone(corpus) -> None:
    for split, found in corpus.items():
        for sample in found:
            assert sample.split == split
            assert split_of(sample.source, split == "combinations") == split


@pytest.mark.parametrize(
    ("source", "split"),
    [
        ("This cook is old.", "train"),
        ("The pear was fresh.", "validation"),
        ("The station is old.", "test"),
    ],
)
def test_a_sentence_stays_in_its_split_from_release_to_release(source, split) -> None:
    """Or a later training would learn what an earlier one is tested on."""
    assert split_of(source, combined=False) == split


def test_sizes_and_distinct_english_sides(corpus) -> None:
    sizes = {split: len(found) for split, found in corpus.items()}
    assert sizes == {
        "train": 40_000,
        "validation": 1000,
        "test": 1000,
        "combinations": 1000,
    }
    for found in corpus.values():
        assert len({sample.source for sample in found}) == len(found)


def combinations(sample: GrammarSample) -> set[tuple[str, str]]:
    """Adjective–noun and verb–object pairs, read off the English tree."""
    found = set()
    for node in subtrees(sample.source_tree):
        children = [child for child in node.children if isinstance(child, Tree)]
        heads = [noun_of(child) for child in children]
        if node.label == "NP" and heads and (head := noun_of(node)):
            found |= {(c.leaves[0].lower(), head) for c in children if c.label == "JJ"}
            if children[-1].label == "SBAR":
                found |= relative_object(children[0], children[-1])
        if node.label == "VP" and (name := verb_name(node)):
            found |= {(name, head) for head in objects_of(node) if head}
        if node.label in ("S", "SQ"):
            subject = next((noun_of(c) for c in children if c.label == "NP"), None)
            predicate = next((p for c in children if (p := predicate_of(c))), None)
            if subject and predicate:
                found.add((predicate, subject))
    return found


FORMS = {
    form: verb.base
    for verb in VERBS
    for form in (verb.base, third_person(verb.base), verb.past)
}
SINGULAR = {noun.plural: noun.singular for noun in NOUNS} | {
    noun.singular: noun.singular for noun in NOUNS
}


def noun_of(tree: Tree) -> str | None:
    if tree.label != "NP":
        return None
    last = ordered_preterminals(core(tree))[-1]
    return SINGULAR.get(last.leaves[0]) if last.label in ("NN", "NNS") else None


def verb_name(node: Tree) -> str | None:
    """The verb of this very VP, with its particle."""
    words = [c for c in node.children if c.is_preterminal and c.label.startswith("VB")]
    if not words or words[0].leaves[0] not in FORMS:
        return None
    base = FORMS[words[0].leaves[0]]
    for child in node.children:
        governs = child.label == "PP" and child.leaves[0] in ("at", "for", "to")
        if governs or child.label in ("PRT", "ADJP"):
            name = f"{base} {child.leaves[0]}"
            if any(verb.name == name for verb in VERBS):
                return name
    return base


def objects_of(node: Tree) -> list[str | None]:
    phrases = [c for c in node.children if c.label == "NP"]
    for child in node.children:
        if child.label == "PP" and f" {child.leaves[0]}" in (verb_name(node) or ""):
            phrases += [c for c in child.children if c.label == "NP"]
    return [noun_of(phrase) for phrase in phrases]


def relative_object(antecedent: Tree, clause: Tree) -> set[tuple[str, str]]:
    inner = clause.children[-1]
    head = noun_of(antecedent)
    if clause.children[0].label != "WHNP" or inner.children[0].label != "NP":
        return set()
    names = {verb_name(node) for node in subtrees(inner) if node.label == "VP"}
    return {(name, head) for name in names if name and head}


def predicate_of(tree: Tree) -> str | None:
    for node in [tree] if tree.label == "ADJP" else subtrees(tree):
        if node.label == "SBAR":
            return None
        if node.label == "ADJP":
            words = [
                c.leaves[0] for c in node.children if c.label in ("JJ", "JJR", "RBR")
            ]
            words = [word for word in words if word != "more"]
            for adjective in ADJECTIVES:
                if words and words[-1] in (adjective.english, adjective.comparative):
                    return adjective.english
    return None


def test_held_out_combinations_do_not_occur_in_the_plain_splits(corpus) -> None:
    held_out = held_out_combinations()
    checked = 0
    for split in ("train", "validation", "test"):
        for sample in corpus[split]:
            pairs = combinations(sample)
            assert not pairs & held_out, (sample.source, pairs & held_out)
            checked += len(pairs)
    assert checked > 15_000


def test_every_sample_of_the_combinations_has_a_held_out_one(corpus) -> None:
    held_out = held_out_combinations()
    for sample in corpus["combinations"]:
        if "anaphora" not in sample.tags:  # there a pronoun may stand for the noun
            assert combinations(sample) & held_out, sample.source


def test_both_kinds_of_combinations_are_held_out_many_times() -> None:
    verbs = {verb.name for verb in VERBS}
    kinds = Counter(pair[0] in verbs for pair in held_out_combinations())
    assert kinds[True] > 30
    assert kinds[False] > 50


def test_every_word_of_the_combinations_is_seen_in_training(corpus) -> None:
    for side in ("source_tokens", "target_tokens"):
        seen = {w.lower() for sample in corpus["train"] for w in getattr(sample, side)}
        wanted = {
            w.lower()
            for sample in corpus["combinations"]
            for w in getattr(sample, side)
        }
        assert wanted <= seen


def test_every_noun_verb_and_adjective_occurs_in_training(corpus) -> None:
    seen = {
        token.lower() for sample in corpus["train"] for token in sample.source_tokens
    }
    words = {noun.singular for noun in NOUNS} | {a.english for a in ADJECTIVES}
    assert words <= seen
    assert all({v.base, v.past, third_person(v.base)} & seen for v in VERBS)
    assert len(words) + len({verb.name for verb in VERBS}) > 250


def test_every_kind_and_phenomenon_is_there(corpus) -> None:
    kinds = Counter(sample.kind for sample in corpus["train"])
    assert set(kinds) == set(KINDS)
    found = Counter(tag for sample in corpus["train"] for tag in sample.tags)
    for tag in (
        *("relative", "distance", "subordinate", "anaphora", "separable", "perfect"),
        *(
            "modal",
            "negation",
            "dative",
            "direction",
            "genitive",
            "question",
            "fronted",
        ),
    ):
        assert found[tag] > 100, tag


# Bad input


def test_unknown_splits_and_negative_counts_get_a_sentence() -> None:
    with pytest.raises(InputError, match=r"split must be one of train, .* got 'dev'"):
        generate(1, seed=0, split="dev")
    with pytest.raises(
        InputError, match="count must lie between 0 and 10,000,000, got -1"
    ):
        generate(-1, seed=0)


def test_a_kind_that_is_used_up_gets_a_sentence(monkeypatch) -> None:
    """There is but one sentence left to draw: it is found once, and then no more."""
    drawn: list = []

    def the_same(draw, kinds):
        return (drawn or drawn.append(derive(draw, kinds)) or drawn)[0]

    monkeypatch.setattr("aiayn.data.grammar.derive", the_same)
    monkeypatch.setattr("aiayn.data.grammar.USED_UP", 50)
    with pytest.raises(InputError, match="different sentences of comparison were"):
        generate(2, seed=0, kinds=["comparison"])


def test_no_samples_are_an_empty_list() -> None:
    assert generate(0, seed=0) == []


@pytest.mark.parametrize("was_enabled", [True, False])
def test_garbage_is_collected_again_afterwards_if_it_was_before(was_enabled) -> None:
    try:
        gc.enable() if was_enabled else gc.disable()
        generate(1, seed=0)
        assert gc.isenabled() is was_enabled
    finally:
        gc.enable()
