"""§6.3: treebanks, and the strings that a parser is trained on."""

from aiayn.data import Tokenizer, load_corpus
from aiayn.data.grammar import load_grammar
from aiayn.parsing import (
    delinearise,
    load_treebank,
    parse_tree,
    tree_pairs,
)

OPTIONS = {"size": 40, "held_out_size": 5, "seed": 3}


def test_the_grammars_trees_are_its_samples():
    bank = load_treebank(**OPTIONS)
    samples = load_grammar(**OPTIONS)
    assert list(bank) == ["train", "validation", "test", "combinations"]
    for split, trees in bank.items():
        assert list(trees) == [sample.source_tree for sample in samples[split]]


def test_a_parsers_corpus_holds_the_same_trees_in_the_same_order():
    bank = load_treebank(**OPTIONS)
    corpus = load_corpus("grammar", target="trees", **OPTIONS)
    assert (corpus.source_language, corpus.target_language) == ("en", "trees")
    for split, trees in bank.items():
        for (words, symbols), tree in zip(corpus.split(split), trees, strict=True):
            assert tuple(words.split()) == tree.leaves
            back = delinearise(symbols.split(), words.split())
            assert back.spans() == tree.spans()


def test_every_symbol_is_one_piece_of_a_small_vocabulary():
    """So a parser writes a symbol a step, and pieces are spent on words."""
    text = load_corpus("grammar", target="trees", size=1000).train
    tokenizer = Tokenizer.train([*text.source, *text.target], 1200, whole_symbols=True)
    symbols = sorted({symbol for line in text.target for symbol in line.split()})
    assert len(symbols) > 20
    for symbol in symbols:
        assert tokenizer.pieces(tokenizer.encode(symbol)) == [f"▁{symbol}"]
    apart = Tokenizer.train([*text.source, *text.target], 1200)
    assert len(apart.encode("(NP")) == 2  # why the option is there


def test_function_tags_are_not_learnt():
    """But words keep their hyphens, and so does a label that begins with one."""
    tree = parse_tree("(S-TPC (NP-SBJ=2 (-LRB- -LRB-) (NN tea-cup)) (-X- (VBZ is)))")
    assert list(tree_pairs([tree])) == [
        ("-LRB- tea-cup is", "(S (NP XX XX )NP (-X XX )-X )S")
    ]
