"""The bug clinic's patients: this very package, each with one mistake put in.

A patient is made from the package's own source. What a reader examines is therefore no
toy: train it, let it write, look inside. The mistakes are in the plain classes; train a
patient with ``fast=False``. The tests make the same patients, and show
that the package's ordinary tests catch every one.
"""

import difflib
import importlib
import inspect
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from types import ModuleType

from aiayn.errors import InputError

_IMPORTS = re.compile(r"^(\s*(?:from|import) )aiayn\b", re.MULTILINE)


@dataclass(frozen=True)
class Bug:
    """One mistake: what stands in a module's source, and what somebody wrote instead.

    Args:
        id: Its name, and the last part of the patient's.
        module: Where it sits, without the package's name.
        changes: Pieces of the source that occur there once, and what takes the place of
            each.
        extra: What the sick pieces need, put before the first import from aiayn.
    """

    id: str
    module: str
    changes: dict[str, str]
    extra: str = ""

    def infect(self, source: str) -> str:
        """The module's source with the mistake in it.

        Raises:
            InputError: A healthy piece does not occur there exactly once.
        """
        for healthy, sick in self.changes.items():
            if (count := source.count(healthy)) != 1:
                raise InputError(
                    f"{healthy!r} occurs {count} times in aiayn.{self.module}: bug "
                    f"{self.id!r} has to follow what has changed there."
                )
            source = source.replace(healthy, sick)
        if self.extra:
            head, mark, rest = source.partition("\nfrom aiayn.")
            source = f"{head}\n{self.extra}{mark}{rest}"
        return source


_BESSEL = """\
class BesselLayerNorm(nn.LayerNorm):
    def forward(self, x):
        mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        return self.weight * (x - mean) / (std + self.eps) + self.bias
"""

# In the order in which the clinic receives them.
BUGS = (
    Bug(
        "no-scale",
        "model.attention",
        {" / math.sqrt(d_k)": "", " / math.sqrt(self.d_k)": ""},
    ),
    Bug(
        "wrong-axis",
        "model.attention",
        {
            "scores.masked_fill(~mask, -math.inf).softmax(dim=-1)": (
                "scores.masked_fill(~mask, -math.inf).softmax(dim=-2)"
            )
        },
    ),
    Bug(
        "mask-only-in-training",
        "model.transformer",
        {
            "target_mask = causal_mask(target.size(1), target.device)": (
                "target_mask = causal_mask(target.size(1), target.device) | "
                "torch.tensor(not self.training)"
            )
        },
    ),
    Bug(
        "labels-not-shifted",
        "model.transformer",
        {"torch.cat([bos, target], dim=1)[:, :-1]": "target"},
    ),
    Bug("position-always-zero", "model.transformer", {"start=cache.length": "start=0"}),
    Bug(
        "padding-as-start",
        "inference.greedy",
        {
            "source.new_full((len(source),), bos_id)": (
                "source.new_full((len(source),), model.config.pad_id)"
            )
        },
    ),
    Bug(
        "layer-norm",
        "model.layers",
        {"self.norm = nn.LayerNorm(d_model)": "self.norm = BesselLayerNorm(d_model)"},
        _BESSEL,
    ),
    Bug(
        "schedule-per-batch",
        "training.trainer",
        {"self.learning_rate(step)": "self.learning_rate(step * len(batches))"},
    ),
    Bug(
        "deep-copies",
        "model.layers",
        {
            "[EncoderLayer(config) for _ in layers]": (
                "[deepcopy(layer) for layer in [EncoderLayer(config)] for _ in layers]"
            )
        },
        "from copy import deepcopy",
    ),
    Bug(
        "minus-a-billion",
        "model.attention",
        {
            "scores.masked_fill(~mask, -math.inf).softmax(dim=-1)": (
                "scores.masked_fill(~mask, -1e9).softmax(dim=-1)"
            )
        },
    ),
    Bug(
        "wrong-root",
        "model.attention",
        {"math.sqrt(self.d_k)": "math.sqrt(self.num_heads * self.d_k)"},
    ),
    Bug(
        "dropout-in-evaluation",
        "model.layers",
        {"self.dropout(update)": "F.dropout(update, self.dropout.p)"},
    ),
    Bug(
        "padding-counts",
        "training.loss",
        {
            "smoothing, self.pad_id": "smoothing, -100",  # what torch ignores by itself
            "(target != pad_id).flatten()": "(target == target).flatten()",
        },
    ),
)


def admit(number: int) -> ModuleType:
    """Patient number so-and-so: all of aiayn, imported anew, with one mistake in it.

    Args:
        number: From 1; `BUGS` holds what is wrong, so do not look there yet.

    Returns:
        A package that is used as aiayn is: ``admit(3).Transformer``, and so on.

    Raises:
        InputError: There is no such patient.
    """
    bug = _bug(number)
    name = f"patient_{number}"
    if name not in sys.modules:
        sys.meta_path.insert(0, _Importer(name, bug))
    return importlib.import_module(name)


def reveal(number: int) -> str:
    """What was changed, as lines taken out (-) and put in (+).

    Raises:
        InputError: There is no such patient.
    """
    bug = _bug(number)
    healthy = _source(f"aiayn.{bug.module}")
    lines = difflib.unified_diff(
        healthy.splitlines(), bug.infect(healthy).splitlines(), lineterm="", n=0
    )
    changes = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    return "\n".join([f"aiayn/{bug.module.replace('.', '/')}.py", *changes])


def _bug(number: int) -> Bug:
    if not 1 <= number <= len(BUGS):
        raise InputError(
            f"There is no patient {number}: the clinic has 1 to {len(BUGS)}."
        )
    return BUGS[number - 1]


def _source(module: str) -> str:
    return inspect.getsource(importlib.import_module(module))


class _Importer(MetaPathFinder, Loader):
    """Imports the package under another name, with a bug in one of its modules."""

    def __init__(self, name: str, bug: Bug) -> None:
        self.name, self.bug = name, bug

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The file behind the healthy module, if the name is one of the patient's."""
        if fullname.partition(".")[0] != self.name:
            return None
        original = find_spec(self._original(fullname))
        if original is None:
            return None
        return spec_from_file_location(
            fullname,
            original.origin,
            loader=self,
            submodule_search_locations=original.submodule_search_locations,
        )

    def exec_module(self, module: ModuleType) -> None:
        """Run the source, infected if it is that module's, under the new names."""
        original = self._original(module.__name__)
        source = _source(original)
        if original == f"aiayn.{self.bug.module}":
            source = self.bug.infect(source)
        source = _IMPORTS.sub(rf"\g<1>{self.name}", source)
        exec(compile(source, module.__name__, "exec"), vars(module))

    def _original(self, fullname: str) -> str:
        return "aiayn" + fullname.removeprefix(self.name)
