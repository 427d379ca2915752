"""§5: every choice of a training run, and recipes that are known to work."""

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Unpack, get_args, get_origin

from aiayn.errors import InputError
from aiayn.model import TransformerConfig
from aiayn.model.validation import hold_python_numbers
from aiayn.storage import describe_config, expand, read_config
from aiayn.training.choices import TrainingChoices
from aiayn.version import __version__

_MAY_BE_ZERO = ("validation_sentences", "cooldown_steps", "seed")


@dataclass(frozen=True)
class TrainingConfig:
    """Every choice of a training run; the defaults are the paper's base training.

    Raises:
        InputError: A value is of the wrong kind, or out of its range.

    Paper: §5.

    >>> config = TrainingConfig()
    >>> config.corpus, config.steps, config.warmup_steps, config.label_smoothing
    ('wmt14', 100000, 4000, 0.1)
    >>> TrainingConfig.grammar(seed=2).corpus  # two minutes on one core
    'grammar'
    """

    corpus: str = "wmt14"
    """grammar (embedded), multi30k, tatoeba, wmt14 (§5.1), or a folder of your own that
    contains train.* and validation.*."""
    source: str = "en"
    """Language to translate from."""
    target: str = "de"
    """Language to translate into; trees, to parse (§6.3)."""
    corpus_size: int | None = None
    """Number of training pairs (grammar: to generate); None: all."""
    output: Path = Path("runs/base")
    """Folder for configuration, tokenizer, log and checkpoints."""
    model: TransformerConfig = field(default_factory=TransformerConfig)
    """The model's sizes (§3); the tokenizer is trained with its vocab_size."""
    max_length: int = 256
    """Longest sentence, in pieces; longer pairs are left out of training, which logs
    how many there are, and of validation."""
    tokens_per_batch: int = 25_000
    """Largest number of tokens of a batch on either side, padding included (§5.1)."""
    packed_length: int | None = None
    """Length of rows into which several pairs are packed; None: one pair a row."""
    accumulate: int = 1
    """Batches whose gradients are added up for one optimizer step."""
    steps: int = 100_000
    """Optimizer steps (§5.2)."""
    warmup_steps: int = 4000
    """Steps in which the learning rate rises (§5.3)."""
    cooldown_steps: int = 0
    """Last steps, in which the learning rate falls to zero (not in the paper)."""
    learning_rate_scale: float = 1.0
    """Factor on the paper's learning rate, equation (3)."""
    optimizer: Literal["adam", "muon"] = "adam"
    """Adam (§5.3); muon: Muon for the weights of linear layers (Jordan et al., 2024),
    Adam for all others."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Adam's decay rates (§5.3)."""
    epsilon: float = 1e-9
    """The ε in Adam's denominator (§5.3)."""
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
    """Decides the initial weights, the order of the batches, and dropout."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""
    precision: Literal["fp32", "bf16", "auto"] = "fp32"
    """bf16: torch's autocast to bfloat16; auto: bf16 where the device is fast at it. A
    run keeps the precision that it begins with."""
    fast: bool = True
    """Accelerate the model (`aiayn.fast`); False computes with the plain classes."""
    compile: bool = False
    """Compile the model with torch.compile; meant for a GPU."""
    threads: int | None = None
    """Threads of the CPU during the training; None: as torch has it. Where other
    programs use the processor, several wait for one another: one is faster then."""
    progress: bool = True
    """Show a progress bar in a terminal, and a line a record of the log elsewhere."""

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        if isinstance(self.output, str | Path):
            object.__setattr__(self, "output", expand(self.output))
        for part in fields(self):
            _check(part.name, part.type, getattr(self, part.name))
        if self.label_smoothing >= 1.0:
            raise InputError(f"label_smoothing is {self.label_smoothing}, and not < 1.")
        if self.clip_norm == 0.0:
            raise InputError("clip_norm must be larger than 0, or None: not clipped.")

    def as_dict(self) -> dict[str, Any]:
        """The configuration in types that JSON has."""
        texts = {"corpus": str(self.corpus), "output": str(self.output)}  # or paths
        return vars(self) | texts | {"model": describe_config(self.model)}

    @classmethod
    def from_dict(
        cls, values: dict[str, Any], file: Path | None = None
    ) -> "TrainingConfig":
        """The configuration that `as_dict` described, or a run's config.json holds.

        Args:
            values: What was read.
            file: Where, for messages.

        Raises:
            InputError: It is not such a dictionary, or one of another version; the
                sentence names the file and both versions.
        """
        try:
            choices = values | {
                "output": Path(values["output"]),
                "model": read_config(values["model"]),
                "betas": tuple(values["betas"]),
            }
            if "plain" in choices:  # written by the first edition
                choices["fast"] = not choices.pop("plain")
            for name in ("version", "digests"):  # of the run, and no choices
                choices.pop(name, None)
            return cls(**choices)
        except (TypeError, KeyError, AttributeError, InputError) as error:
            version = values.get("version") if isinstance(values, dict) else None
            raise InputError(
                f"{file or 'This'} cannot be used, for it holds no training "
                f"configuration of aiayn {__version__}: {str(error).rstrip('.')}. It "
                f"was written by version {version or 'unknown'}: take that version, or "
                "correct the file."
            ) from None

    @classmethod
    def grammar(cls, **changes: Unpack[TrainingChoices]) -> "TrainingConfig":
        """The embedded corpus: no download, a minute or two on one core."""
        # In so short a time, many small steps teach more than few large ones, and new
        # pairs more than repeated ones. Packed rows bring sentences of all lengths into
        # each small batch. Each pair is seen little more than once, so that no dropout
        # is needed. With Muon, a narrower model learns as much in less time (chapter
        # 21).
        model = TransformerConfig.tiny(vocab_size=2500, d_model=96, d_ff=384)
        config = cls(
            corpus="grammar",
            corpus_size=100_000,
            output=Path("runs/grammar"),
            model=replace(model, dropout=0.0),
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
            threads=1,  # two that wait for each other are far slower than one
        )
        return replace(config, **changes)

    @classmethod
    def multi30k(cls, **changes: Unpack[TrainingChoices]) -> "TrainingConfig":
        """Multi30k en→de, 29,000 captions: about half an hour on two cores."""
        # There are few captions, and a narrow model overfits them least (Wu et al.,
        # 2021). Rotary positions need fewer steps (chapter 21), small batches learn
        # more from each caption, and packed rows bring captions of all lengths into
        # each batch. The last gain comes from the cooldown of the learning rate.
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
    def base(cls, **changes: Unpack[TrainingChoices]) -> "TrainingConfig":
        """The paper's base training on WMT 2014, compiled and in bf16 for a GPU."""
        return replace(cls(precision="bf16", compile=True), **changes)


def _check(name: str, annotation: Any, value: Any) -> None:
    """Refuse what is of the wrong kind or out of range, and unknown choices."""
    kinds = get_args(annotation) or (annotation,)
    if get_origin(annotation) is Literal:
        fits, words = value in kinds, f"one of {', '.join(kinds)}"
    elif int in kinds:
        lowest = 0 if name in _MAY_BE_ZERO else 1
        fits = type(value) is int and value >= lowest
        words = f"a whole number, at least {lowest}"
    elif name == "betas":
        fits = isinstance(value, tuple | list) and len(value) == 2
        fits = fits and all(isinstance(b, int | float) and 0 <= b < 1 for b in value)
        words = "two numbers in [0, 1)"
    elif float in kinds:
        fits = isinstance(value, int | float) and value >= 0
        words = "a number, at least 0"
    else:
        fits = isinstance(value, (*kinds, Path) if name == "corpus" else kinds)
        words = f"a {kinds[0].__name__}"
    if not fits and not (value is None and NoneType in kinds):
        raise InputError(f"{name} must be {words}, not {value!r:.60}.")
