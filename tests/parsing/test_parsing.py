"""§6.3: words in, trees out, whatever the model writes."""

import pytest
import torch

from aiayn.data import Tokenizer, load_corpus
from aiayn.errors import InputError
from aiayn.model import Transformer, TransformerConfig
from aiayn.parsing import (
    Parse,
    delinearise,
    linearise,
    parse,
    parse_tree,
    repair,
    score_parses,
)


@pytest.fixture(scope="module")
def untrained():
    text = load_corpus("grammar", target="trees", size=200).train
    tokenizer = Tokenizer.train([*text.source, *text.target], 500)
    torch.manual_seed(0)
    config = TransformerConfig.tiny(vocab_size=500, d_model=16, d_ff=16)
    return Transformer(config), tokenizer


def test_an_untrained_model_gives_faults_and_trees_all_the_same(untrained):
    model, tokenizer = untrained
    sentences = ["The dog sleeps .", "Tea helps ."]
    parses = parse(sentences, model, tokenizer, beam_size=1, extra_length=5)
    for sentence, found in zip(sentences, parses, strict=True):
        assert found.tree.leaves == tuple(sentence.split())
        assert found.fault


def test_what_is_well_formed_is_taken_as_it_is(untrained, monkeypatch):
    written = "(S (NP XX )NP (VP XX )VP )S"
    monkeypatch.setattr(
        "aiayn.parsing.parser.translate", lambda lines, *_, **__: [written]
    )
    (found,) = parse(["Tea helps"], *untrained)
    assert found.fault is None
    assert found.symbols == tuple(written.split())
    assert found.tree == delinearise(written.split(), ["Tea", "helps"])


def test_the_papers_search_is_the_default(untrained, monkeypatch):
    """§6.3: 'a beam size of 21 and α = 0.3', output up to input length + 300."""
    seen = {}
    monkeypatch.setattr(
        "aiayn.parsing.parser.translate",
        lambda lines, *_, **options: seen.update(options) or ["XX"],
    )
    parse(["Tea"], *untrained)
    assert seen == {"beam_size": 21, "length_penalty": 0.3, "extra_length": 300}


def test_sentences_may_come_one_by_one_but_not_as_a_text(untrained, unchecked_shapes):
    options = {"beam_size": 1, "extra_length": 5}
    sentences = ["The dog sleeps .", "Tea helps ."]
    found = parse((line for line in sentences), *untrained, **options)
    assert found == parse(sentences, *untrained, **options)
    with pytest.raises(InputError, match=r"give \[text\]"):
        parse("Tea helps .", *untrained)


def test_an_empty_sentence_is_refused(untrained):
    with pytest.raises(InputError, match="Sentence 2 is empty"):
        parse(["Tea", " "], *untrained)


def test_parses_are_scored_with_the_gold_tags_and_with_or_without_repairs():
    """By hand: of S, NP, VP only S comes out of the repair; a full stop counts not."""
    gold = parse_tree("(S (NP (NN Tea)) (VP (VBZ helps)) (. .))")
    right = Parse(delinearise(linearise(gold), gold.leaves), linearise(gold), None)
    assert score_parses([gold], [right]).f1 == 1.0
    broken = Parse(repair(["(S"], gold.leaves), ("(S",), "It is not closed.")
    both = score_parses([gold, gold], [right, broken])
    assert (both.precision, both.recall) == (1.0, 4 / 6)
    strict = score_parses([gold, gold], [right, broken], repaired=False)
    assert (strict.precision, strict.recall) == (1.0, 3 / 6)


def test_parses_without_gold_trees_cannot_be_scored():
    with pytest.raises(InputError, match="of the 1 parses and 0 gold trees"):
        score_parses([], [Parse(parse_tree("(S (XX Tea))"), (), None)])


@pytest.mark.parametrize("repaired", [True, False])
def test_parses_of_other_sentences_cannot_be_scored(repaired):
    """Neither in another order, nor with a fault that would leave no bracket anyway."""
    gold = [parse_tree(f"(S (NN {word}))") for word in ("Tea", "Tea", "Milk")]
    trees = [parse_tree(f"(S (XX {word}))") for word in ("Tea", "Milk", "Tea")]
    parses = [Parse(tree, (), "It is not closed.") for tree in trees]
    with pytest.raises(InputError, match="of the 3 parses and 3 gold trees"):
        score_parses(gold, parses, repaired=repaired)
