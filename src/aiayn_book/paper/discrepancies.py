"""Where the paper's versions, its own code (tensor2tensor) and its text disagree."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Discrepancy:
    """One disagreement, in our words.

    Not in the paper.
    """

    id: str
    """A short name; also the anchor on the page."""
    between: str
    """Versions of the paper (versions), its text alone, or text and code."""
    title: str
    """What disagrees, in a few words."""
    text: str
    """What stands where."""
    evidence: str
    """Where to look it up, so that "Look it up in …" is a sentence."""
    chapter: str
    """The notebook that deals with it."""


_CODE = "https://github.com/tensorflow/tensor2tensor"
# Versions of single files that were read: the first public one where there is a choice.
_FIRST = f"{_CODE}/blob/3d9c62f2aca9492db5c22676416974005b9dcbae/tensor2tensor"
_TRANSFORMER = f"{_FIRST}/models/transformer.py"
_LAYERS = f"{_FIRST}/models/common_layers.py"
_LATER = (
    f"{_CODE}/blob/01b8c31da30a7e1109451df2b4b4698946c6c35c/tensor2tensor/"
    "models/transformer.py"
)
_ATTENTION = (
    f"{_CODE}/blob/0df0f50ba15a8ca98d14455d6477d3f58f551152/tensor2tensor/"
    "models/common_attention.py"
)
_MODALITIES = (
    f"{_CODE}/blob/0fad2909b72ee6bf05eb184d0aff6d81fa93a192/tensor2tensor/"
    "models/modalities.py"
)
_PROBLEMS = (
    f"{_CODE}/blob/006ecb50f6b63a18e0665d7d97869f95a3003dc1/tensor2tensor/"
    "data_generators/problem_hparams.py"
)
_BLEU = (
    f"{_CODE}/blob/315647cdbf6efc78591f3047627ca064c75c31dc/tensor2tensor/"
    "utils/get_ende_bleu.sh"
)

DISCREPANCIES = (
    Discrepancy(
        "seven-versions",
        "versions",
        "Seven versions, and the proceedings",
        "arXiv lists seven versions: four of June 2017, a fifth of December 2017, and "
        "two of summer 2023. This book has read the text of the proceedings and that "
        "of the latest version, and says in what they differ; in which version a "
        "change first came it has not traced.",
        "the [list of versions](https://arxiv.org/abs/1706.03762) at arXiv",
        "17b-bleu-and-table-2",
    ),
    Discrepancy(
        "english-french-bleu",
        "versions",
        "41.0 or 41.8 BLEU for English–French",
        "The proceedings print 41.0 for the big model in the abstract, in Table 2 and "
        "in §6.1. The later arXiv version prints 41.8 in the abstract and in Table 2, "
        "while its §6.1 still says 41.0.",
        "the abstract, Table 2 and §6.1 of both texts",
        "17b-bleu-and-table-2",
    ),
    Discrepancy(
        "metadata-abstract",
        "versions",
        "A third abstract",
        "The proceedings' metadata carry yet another abstract: 165 million parameters, "
        "27.5 and 41.1 BLEU.",
        "the metadata of the paper's page at papers.nips.cc",
        "17b-bleu-and-table-2",
    ),
    Discrepancy(
        "no-parsing",
        "versions",
        "No parsing in the proceedings",
        "The proceedings go from §6.2 to the conclusion: §6.3 and Table 4 are in the "
        "arXiv version only. Yet the proceedings refer to an appendix of attention "
        "pictures that they do not hold.",
        "§6.3, Table 4 and the appendix of the arXiv version, and in the last "
        "paragraph of §4 in the proceedings",
        "19-parsing",
    ),
    Discrepancy(
        "three-kinds",
        "text",
        "Three types of regularization, two headings",
        "§5.4 announces three types of regularization; two headings follow. Counting "
        "the two places of dropout apart would make three.",
        "§5.4",
        "15-regularization",
    ),
    Discrepancy(
        "byte-pairs-cited",
        "text",
        "Byte-pair encoding is cited to Britz et al.",
        "§5.1 cites Britz et al. for byte-pair encoding. It is Sennrich et al. who "
        "brought it into translation, and §4 cites them for it. (Britz et al. report "
        "about 37,000 entries for their own preparation of this text, which may be why "
        "they are cited.)",
        "§5.1 (reference 3) and in §4 (reference 31)",
        "13-data-and-batching",
    ),
    Discrepancy(
        "attention-dropout",
        "text",
        "A dropout that §5.4 does not have",
        "§6.3 says that the parsers' dropout was tuned, “both attention and "
        "residual”, and refers to §5.4. There the outputs of sub-layers and the sums "
        "of embeddings and positions are dropped, and no attention weights. The "
        "authors' code sets both to 0.2 in its parser for the treebank alone.",
        f"§5.4 and §6.3, and in `transformer_parsing_base_dr6` "
        f"([`transformer.py`]({_TRANSFORMER}))",
        "15-regularization",
    ),
    Discrepancy(
        "wavelengths",
        "text",
        "The longest wavelength is not 10000·2π",
        "With the printed formula, the last pair of dimensions stays short of it, "
        "since 2i never reaches d_model. The authors' code divides by one less than "
        "the number of pairs and does reach it.",
        f"§3.5, and in `add_timing_signal_1d` ([`common_attention.py`]({_ATTENTION}))",
        "09-positional-encoding",
    ),
    Discrepancy(
        "interleaved",
        "code",
        "Sines and cosines side by side, or in two halves",
        "The formula alternates sine and cosine; the code puts all sines first and "
        "all cosines after them. A change to the formula's order was merged and taken "
        "back, because it would have broken all trained models.",
        f"tensor2tensor's [pull request 177]({_CODE}/pull/177), and in "
        f"`add_timing_signal_1d` ([`common_attention.py`]({_ATTENTION}))",
        "09-positional-encoding",
    ),
    Discrepancy(
        "post-norm",
        "code",
        "Normalisation after the sum, soon before the sub-layer",
        "The paper and the first released code normalise x + Sublayer(x). Two months "
        "later an option to normalise a sub-layer's input was added, because it seemed "
        "to help, and by October 2017 it was the default.",
        f"`residual_fn` of the first code ([`transformer.py`]({_TRANSFORMER})), and in "
        f"the commits [f5c9b17]({_CODE}/commit/f5c9b17) and "
        f"[d5bdfcc]({_CODE}/commit/d5bdfcc)",
        "07-feed-forward-residual-norm",
    ),
    Discrepancy(
        "later-settings",
        "code",
        "Settings drifted from version to version",
        "In dropout, warm-up, learning rate and Adam the first settings of the code "
        "are those of the paper. The second add dropout inside attention and after "
        "the ReLU, double the warm-up and the learning rate; the third change Adam's "
        "β₂ to 0.997. Many who 'use the paper's settings' use one of those.",
        f"`transformer_base` of the first code ([`transformer.py`]({_TRANSFORMER})), "
        f"in `transformer_base_v2` ([a later version]({_LATER})), and in "
        "`transformer_base_v3` of the last one",
        "14-optimizer",
    ),
    Discrepancy(
        "english-french-model",
        "code",
        "The big English–French model differs by more than dropout",
        "The paper mentions a lower dropout. The first public code also doubles d_ff "
        "to 8192 and does not share the embeddings.",
        f"Table 3 and §6.1, and in `transformer_big_enfr` "
        f"([`transformer.py`]({_TRANSFORMER}))",
        "17b-bleu-and-table-2",
    ),
    Discrepancy(
        "parsing-settings",
        "code",
        "Parsing changed more than the text says",
        "§6.3 keeps all settings of the base model but its sizes, dropout, learning "
        "rate and search. The code never sets four layers, and for the "
        "treebank alone it has 16,000 warm-up steps. (Its learning rate, five times as "
        "high, is one that was tuned.)",
        f"§6.3, and in `transformer_parsing_base_dr6` and `transformer_parsing_big` "
        f"([`transformer.py`]({_TRANSFORMER}))",
        "19-parsing",
    ),
    Discrepancy(
        "batch-size",
        "code",
        "25,000 or 32,768 tokens a batch",
        "The text says about 25,000 tokens. The code has 4,096 on each of eight GPUs.",
        f"§5.1, and in `transformer_base` ([`transformer.py`]({_TRANSFORMER}))",
        "13-data-and-batching",
    ),
    Discrepancy(
        "not-in-the-text",
        "code",
        "Things that the text leaves out",
        "In the code, a learned embedding of the target language is added to the "
        "encoder's input; the decoder begins with a vector of zeros rather than a "
        "begin-of-sentence token; embeddings of padding are zero; and embeddings start "
        "from a normal distribution with standard deviation 1/√d_model.",
        f"`transformer_prepare_encoder` and `transformer_prepare_decoder` "
        f"([`transformer.py`]({_TRANSFORMER})), and in `SymbolModality` "
        f"([`modalities.py`]({_MODALITIES}))",
        "10-encoder-decoder",
    ),
    Discrepancy(
        "label-smoothing",
        "code",
        "Who gets the smoothed probability",
        "The code spreads ε over all tokens but the right one, and subtracts the "
        "loss's lowest possible value from it, so that a perfect model has loss 0. The "
        "text says neither.",
        f"§5.4, and in `smoothing_cross_entropy` ([`common_layers.py`]({_LAYERS}))",
        "15-regularization",
    ),
    Discrepancy(
        "compound-splitting",
        "code",
        "BLEU with split compounds",
        "The English–German BLEU was computed on tokenised text in which a script cuts "
        "every word at its hyphens, in output and reference alike. The script says "
        "why: to be comparable with earlier papers. Users of the code report that this "
        "gives about 0.7 to 1 BLEU more than without.",
        f"[`get_ende_bleu.sh`]({_BLEU}), and in tensor2tensor's issues "
        f"[61]({_CODE}/issues/61) and [317]({_CODE}/issues/317)",
        "17b-bleu-and-table-2",
    ),
    Discrepancy(
        "better-than-all",
        "text",
        "Better than all but one, says the text; Table 4 has two",
        "§6.3 counts its parser better than all models reported before but the "
        "recurrent neural network grammar (93.3 F1). Table 4 also has Luong et al. "
        "with 93.0, above its best, 92.7. Within each kind of training it holds.",
        "§6.3 and Table 4",
        "19-parsing",
    ),
    Discrepancy(
        "dilated",
        "text",
        "Table 1's path for convolutions needs dilation",
        "Table 1 gives logₖ(n) for a convolution. §4 says that this holds for dilated "
        "kernels; contiguous ones need n/k layers.",
        "§4 and Table 1",
        "12-why-self-attention",
    ),
    Discrepancy(
        "parameter-counts",
        "text",
        "No one vocabulary gives Table 3's parameter counts",
        "With the stated vocabulary the counts come out short, in proportion to "
        "d_model, in every row but the last. A larger vocabulary would explain those "
        "rows and a smaller one the big model; no one number gives both. Whether it is "
        "the vocabulary or something else of the same size, the paper does not tell; "
        "the chapter computes the range that each row allows. The first public code "
        "has 40,960 entries, and biases in its attentions: that gives every printed "
        "count but the big model's.",
        f"Table 3 and §5.1, in `wmt_ende_bpe32k` "
        f"([`problem_hparams.py`]({_PROBLEMS})), and in tensor2tensor's "
        f"[issue 55]({_CODE}/issues/55)",
        "paper-numbers",
    ),
)
"""Every disagreement that this book knows of. Not in the paper."""
