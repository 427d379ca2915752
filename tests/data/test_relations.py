"""Relations between words: what the trees say, held against agreement in German."""

from collections import Counter

import pytest

from aiayn.data.grammar import KINDS, generate
from aiayn.data.grammar.nouns import BY_NAME
from aiayn.data.grammar.relations import (
    candidates,
    english_relations,
    german_relations,
)
from aiayn.errors import InputError

PLURAL_VERBS = {"are", "were", "do", "have"}
SINGULAR_VERBS = {"is", "was", "does", "has"}


def words(sample, pairs, side="source"):
    tokens = getattr(sample, f"{side}_tokens")
    return [(tokens[a], tokens[b]) for a, b in pairs]


def test_kinds_are_the_only_ones_drawn_and_a_longer_list_begins_with_a_shorter():
    drawn = generate(60, seed=4, kinds=["copula", "anaphora"])
    assert {sample.kind for sample in drawn} == {"copula", "anaphora"}
    assert drawn[:20] == generate(20, seed=4, kinds=["copula", "anaphora"])


def test_an_unknown_kind_is_answered_with_those_that_there_are():
    with pytest.raises(InputError, match=r"some of simple, .*got 'simpel'"):
        generate(1, seed=0, kinds=["simpel"])


@pytest.mark.parametrize("kind", KINDS)
def test_verb_and_subject_agree_in_number(kind):
    """A subject found wrongly would sooner or later have the other number."""
    plurals = {noun.plural for noun in BY_NAME.values()}
    seen = 0
    for sample in generate(150, seed=7, kinds=[kind]):
        found = english_relations(sample)
        for verb, noun in words(sample, found["subject of the verb"]):
            if noun.lower() in plurals or noun in BY_NAME:
                assert verb.lower() not in (
                    SINGULAR_VERBS if noun.lower() in plurals else PLURAL_VERBS
                ), sample.source
                seen += verb.lower() in SINGULAR_VERBS | PLURAL_VERBS
    assert seen


def test_a_relative_clause_takes_its_subject_from_the_noun_before_it():
    drawn = generate(200, seed=5, kinds=["relative-subject"])
    sample = next(s for s in drawn if s.source_tokens[2] == "who")
    subject = sample.source_tokens[1]
    verbs = words(sample, english_relations(sample)["subject of the verb"])
    assert len(verbs) == 2
    assert {noun for _, noun in verbs} == {subject}


def test_a_time_before_the_subject_is_not_the_subject(unchecked_shapes):
    drawn = generate(600, seed=11, kinds=["simple"])
    sample = next(s for s in drawn if s.source.startswith("Last year"))
    assert sample.source == "Last year he woke up."
    found = english_relations(sample)["subject of the verb"]
    assert words(sample, found) == [("woke", "he")]


def test_a_pronoun_has_the_german_gender_of_its_antecedent():
    forms = {"m": {"er", "ihn"}, "f": {"sie"}, "n": {"es"}}
    checked = 0
    for sample in generate(400, seed=9, kinds=["anaphora"]):
        for pronoun, noun in english_relations(sample)["antecedent of the pronoun"]:
            if sample.source_tokens[pronoun] != "it":
                continue
            gender = BY_NAME[sample.source_tokens[noun]].gender
            partners = {
                sample.target_tokens[j] for i, j in sample.alignment if i == pronoun
            }
            assert partners <= forms[gender], sample.source
            checked += 1
    assert checked > 100


def test_both_candidates_of_it_are_named_where_either_could_be_meant():
    drawn = generate(400, seed=9, kinds=["anaphora"])
    chosen = [(s, candidates(s)) for s in drawn]
    chosen = [(s, both) for s, both in chosen if both is not None]
    meant = {
        both.index(english_relations(s)["antecedent of the pronoun"][0][1])
        for s, both in chosen
    }
    assert meant == {0, 1}
    assert all({s.source_tokens[i] for i in both} <= set(BY_NAME) for s, both in chosen)


def test_the_second_half_of_a_german_verb_stands_behind_the_first():
    """A participle or a separated prefix; both are found."""
    found = Counter()
    for sample in generate(300, seed=3):
        for late, early in german_relations(sample)["first half of the verb"]:
            assert early < late
            found[sample.target_tree.tags[late]] += 1
    assert found.keys() == {"VVPP", "PTKVZ"}
    assert found.total() > 50
