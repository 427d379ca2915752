"""Who is measured: our package, and what else trains or runs a Transformer.

Each peer is a module of this folder of the same name, an adapter with up to four
functions:

- ``build(config) -> model``: a new model of that size;
- ``training_step(model, narrow, schedule) -> step(source, target)``: one optimizer
  step, in bfloat16 autocast if narrow; it returns the batch's mean loss;
- ``trained(folder, device) -> model``: the model with the weights of a run of ours;
- ``searcher(model) -> translate(rows, beam_size)``: from source ids, each row ending in
  EOS, to output ids.

Nothing is imported here: a peer's libraries exist in its own environment only.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """What a peer needs, and what it is measured at."""

    name: str
    """The adapter's module."""
    title: str
    requirements: tuple[str, ...] = ()
    """What pip installs, pinned. None: the project's own environment serves."""
    bare: tuple[str, ...] = ()
    """What pip installs without dependencies, for these ask for another torch."""
    pip: str | None = None
    """Which pip installs all that. None: the one that Python brings."""
    plain_python: bool = False
    """Whether to leave its compiled parts out, which nothing measured here needs."""
    trains: bool = True
    """Whether it has a training step."""
    translates: bool = False
    """Whether our trained weights fit into it exactly, so that it can translate."""


_TRANSFORMERS = ("transformers==5.23.0",)
_CTRANSLATE2 = ("ctranslate2==4.8.5",)

PEERS = {
    peer.name: peer
    for peer in (
        Peer("ours", "aiayn", translates=True),
        Peer("plain", "aiayn, not accelerated"),
        Peer("torch_nn", "torch.nn.Transformer", translates=True),
        Peer("marian", "Hugging Face Marian", _TRANSFORMERS, translates=True),
        Peer("bart", "Hugging Face BART", _TRANSFORMERS),
        Peer("t5", "Hugging Face T5", _TRANSFORMERS),
        Peer("x_transformers", "x-transformers", ("x-transformers==2.31.10",)),
        Peer(
            "fairseq",
            "fairseq",
            (
                "hydra-core==1.0.7",
                "omegaconf==2.0.6",
                "antlr4-python3-runtime==4.8",
                "bitarray==3.12.3",
                "cffi==2.1.1",
                "regex==2026.11.15",
            ),
            ("fairseq==0.12.2",),  # asks for torchaudio, which nothing here needs
            pip="pip<24.1",  # later ones refuse what omegaconf 2.0.6 says of itself
            plain_python=True,  # else it needs a compiler; data and BLEU use them
            translates=True,
        ),
        Peer(
            "joeynmt",
            "Joey NMT",
            (
                "tensorboard==2.21.0",
                "importlib_metadata==10.2.0",
                "sacremoses==0.2.0",
                "subword-nmt==0.3.8",
            ),
            ("joeynmt==2.3.0",),  # asks for a protobuf that no longer installs
        ),
        Peer(
            "ctranslate2",
            "CTranslate2",
            _CTRANSLATE2,
            trains=False,
            translates=True,
        ),
        Peer(
            "ctranslate2_int8",
            "CTranslate2, 8 bits",
            _CTRANSLATE2,
            trains=False,
            translates=True,
        ),
    )
}
