"""§5: every choice of a training run, and recipes that are known to work."""

import math
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from aiayn.errors import InputError
from aiayn.model import TransformerConfig
from aiayn.model.description import describe_config, read_config
from aiayn.model.validation import check_sizes, hold_python_numbers

_COUNTS = (
    "max_length",
    "tokens_per_batch",
    "accumulate",
    "steps",
    "warmup_steps",
    "log_every",
    "validate_every",
    "keep",
)

# The least and the most that makes sense of what may also be None or zero.
_RANGES: dict[str, tuple[float, float]] = {
    "corpus_size": (1, math.inf),
    "validation_sentences": (0, math.inf),
    "packed_length": (1, math.inf),
    "cooldown_steps": (0, math.inf),
    "seed": (0, math.inf),
    "threads": (1, 4096),
    "learning_rate_scale": (0.0, 1e6),
    "epsilon": (0.0, 1.0),
}


@dataclass(frozen=True)
class TrainingConfig:
    """Every choice of a training run.

    Raises:
        InputError: A number is out of its range, or is not whole where it has to be.

    Paper: §5.

    >>> config = TrainingConfig.base()  # the paper's, for a GPU
    >>> config.steps, config.warmup_steps, config.label_smoothing
    (100000, 4000, 0.1)
    >>> TrainingConfig.grammar(seed=2).corpus  # minutes on one core
    'grammar'
    """

    corpus: str = "grammar"
    """grammar (embedded), multi30k, tatoeba, wmt14, or a folder of your own, which has
    to hold train.* and validation.*."""
    source: str = "en"
    """Language to translate from."""
    target: str = "de"
    """Language to translate into; trees, to parse (§6.3)."""
    corpus_size: int | None = None
    """Training pairs to take (grammar: to make); None: all that there are."""
    output: Path = Path("runs/latest")
    """Folder for configuration, tokenizer, log and checkpoints."""
    model: TransformerConfig = field(default_factory=TransformerConfig.tiny)
    """The model's sizes; its vocab_size is that of the tokenizer too."""
    max_length: int = 256
    """Pieces; longer pairs are left out: of training, which counts them, and of
    validation, its loss and its BLEU."""
    tokens_per_batch: int = 25_000
    """Most source and most target tokens in a batch, padding included (§5.1)."""
    packed_length: int | None = None
    """Pieces of a row that several pairs fill; None: one pair, and padding."""
    accumulate: int = 1
    """Batches whose gradients are added up before the weights move."""
    steps: int = 100_000
    """Optimizer steps (§5.2)."""
    warmup_steps: int = 4000
    """Steps in which the learning rate rises (§5.3)."""
    cooldown_steps: int = 0
    """Last steps, at most all, in which the rate falls to zero (not in the paper)."""
    learning_rate_scale: float = 1.0
    """Factor on the paper's learning rate, equation (3)."""
    optimizer: Literal["adam", "muon"] = "adam"
    """Adam (§5.3); muon: Muon for the weights of linear layers (Jordan et al., 2024),
    Adam for all others."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Adam's decay rates (§5.3)."""
    epsilon: float = 1e-9
    """What Adam adds to its denominator (§5.3)."""
    clip_norm: float | None = None
    """Largest norm of a gradient; None: not clipped, as in the paper."""
    label_smoothing: float = 0.1
    """Probability that is spread over the whole vocabulary (§5.4)."""
    log_every: int = 50
    """Steps between two records of the loss."""
    validate_every: int = 1000
    """Steps between two validations; each saves a checkpoint."""
    validation_sentences: int = 200
    """Validation sentences to translate for BLEU; 0: only the loss."""
    keep: int = 5
    """Checkpoints to keep, and to average at the end (§6.1)."""
    seed: int = 1
    """Weights, order of the batches and dropout follow from it."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""
    precision: Literal["fp32", "bf16", "auto"] = "fp32"
    """bf16: torch's autocast to bfloat16; auto: where the device multiplies it fast."""
    fast: bool = True
    """Accelerate the model (`aiayn.fast`); False computes with the plain classes."""
    compile: bool = False
    """Compile the model with torch.compile; meant for a GPU."""
    threads: int | None = None
    """Threads of a CPU, which its process keeps afterwards; None: torch's choice."""
    progress: bool = True
    """Show a progress bar, where there is a terminal."""

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        if not isinstance(self.model, TransformerConfig):
            raise InputError(
                "model must be a configuration, such as TransformerConfig.base(), not "
                f"{self.model!r:.60}."
            )
        check_sizes(1, **{name: getattr(self, name) for name in _COUNTS})
        _check_kinds(self)
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                limits = (
                    f"be at least {low:g}"
                    if high == math.inf
                    else f"lie between {low:g} and {high:g}"
                )
                raise InputError(f"{name} must {limits}, not {value}.")
        if self.packed_length and self.packed_length > self.tokens_per_batch:
            raise InputError(
                f"A row of packed_length = {self.packed_length} does not fit into "
                f"tokens_per_batch = {self.tokens_per_batch}: allow more there, or "
                "shorten the rows."
            )
        if self.clip_norm is not None and not 0.0 < self.clip_norm < float("inf"):
            raise InputError(
                "clip_norm must be larger than 0, which leaves nothing of a gradient, "
                f"and finite, not {self.clip_norm}: leave it out (None), not to clip."
            )
        if not _are_betas(self.betas):
            raise InputError(
                f"betas are two numbers in [0, 1), not {self.betas!r:.60}."
            )
        if self.optimizer not in ("adam", "muon"):
            raise InputError(f"optimizer is adam or muon, not {self.optimizer!r:.60}.")
        if self.precision not in ("fp32", "bf16", "auto"):
            raise InputError(
                f"precision is fp32, bf16 or auto, not {self.precision!r}."
            )
        if not 0.0 <= self.label_smoothing < 1.0:
            raise InputError(
                "label_smoothing is a probability in [0, 1), not "
                f"{self.label_smoothing}."
            )
        if self.source == self.target:
            raise InputError(
                f"source and target are both {self.source!r}: name two languages."
            )

    @property
    def first_validation(self) -> int:
        """The step after which something is saved for the first time."""
        return min(self.validate_every, self.steps)

    def as_dict(self) -> dict[str, Any]:
        """The configuration as JSON can hold it."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        model = describe_config(self.model)
        texts = {"corpus": str(self.corpus), "output": str(self.output)}  # may be paths
        return values | texts | {"model": model}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TrainingConfig":
        """What `as_dict` gave.

        Raises:
            InputError: It is not such a dictionary, or one of another version.
        """
        try:
            values = dict(values)
            if "plain" in values:  # of the first edition
                values["fast"] = not values.pop("plain")
            choices = values | {
                "output": Path(values["output"]),
                "model": read_config(values["model"]),
                "betas": tuple(values["betas"]),
            }
            return cls(**choices)
        except (TypeError, KeyError) as error:
            raise InputError(f"This is no training configuration: {error}.") from None

    @classmethod
    def grammar(cls, **changes) -> "TrainingConfig":
        """The embedded corpus: no download, a minute or two on one core."""
        # In so short a time, many small steps teach more than few large ones, and pairs
        # not seen before more than the same again; packed rows bring sentences of all
        # lengths into each small batch; nearly all words are whole pieces; nothing is
        # dropped: so few steps see each pair little more than once; and with Muon a
        # narrower model learns as much in less time (chapter 14).
        config = cls(
            corpus="grammar",
            corpus_size=100_000,
            output=Path("runs/grammar"),
            model=TransformerConfig.tiny(
                vocab_size=2500, d_model=96, d_ff=384, dropout=0.0
            ),
            tokens_per_batch=512,
            packed_length=24,
            steps=2400,
            warmup_steps=400,
            cooldown_steps=1400,
            optimizer="muon",
            validate_every=500,
            validation_sentences=0,
            keep=2,
            precision="auto",
        )
        return replace(config, **changes)

    @classmethod
    def multi30k(cls, **changes) -> "TrainingConfig":
        """Multi30k en→de, 29,000 captions: about half an hour on two cores."""
        # Few captions: a narrow model is the last to learn them by heart (Wu et al.,
        # 2021), with rotary positions it learns more in fewer steps (chapter 21), small
        # batches make more of each caption, packed rows bring captions of all lengths
        # into each batch, and the falling rate gathers it in.
        config = cls(
            corpus="multi30k",
            output=Path("runs/multi30k"),
            model=TransformerConfig.tiny(
                vocab_size=10_000,
                d_ff=256,
                num_encoder_layers=4,
                num_decoder_layers=4,
                dropout=0.3,
                norm="pre",
                positions="rotary",
            ),
            tokens_per_batch=2048,
            packed_length=64,
            steps=8000,
            warmup_steps=1000,
            cooldown_steps=4000,
            learning_rate_scale=1.4,
            validate_every=500,
            precision="auto",
        )
        return replace(config, **changes)

    @classmethod
    def base(cls, **changes) -> "TrainingConfig":
        """The paper's base model and training on WMT 2014: 100,000 steps, for a GPU."""
        config = cls(
            corpus="wmt14",
            output=Path("runs/base"),
            model=TransformerConfig.base(),
            precision="bf16",
            compile=True,
        )
        return replace(config, **changes)


# What a field may hold, by its annotation, and in words.
_KINDS: dict[Any, tuple[Any, str]] = {
    int: (int, "a whole number"),
    int | None: (int | None, "a whole number or None"),
    float: (int | float, "a number"),
    float | None: (int | float | None, "a number or None"),
    bool: (bool, "True or False"),
    str: (str | Path, "a text"),
    Path: (str | Path, "a path"),
}


def _check_kinds(config: TrainingConfig) -> None:
    """Refuse what config.json could not hold, or nobody could read back from it.

    1e5 is no whole number in Python, and NumPy's float32 is no number in JSON.
    """
    for part in fields(config):
        if part.type not in _KINDS:
            continue
        value, (kind, words) = getattr(config, part.name), _KINDS[part.type]
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
            raise InputError(f"{part.name} must be {words}, not {value!r:.60}.")
        if isinstance(value, int) and value >= 2**63:
            raise InputError(f"{part.name} must be smaller than 2**63.")


def _are_betas(values: Any) -> bool:
    """Whether they are two shares that Adam keeps of its means."""
    return (
        isinstance(values, tuple | list)
        and len(values) == 2
        and all(isinstance(v, int | float) and 0.0 <= v < 1.0 for v in values)
    )
