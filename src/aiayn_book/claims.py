"""The ledger of claims: every claim of the paper, and the call that settles one.

The data file ``claims.json`` holds the claims in the paper's own order, from abstract
to appendix. A chapter measures something and calls `settle` with the outcome; the
verdict follows from the measurement and is never typed. The verdict that the file
records is what a build must find again: `aiayn_book.ledger` compares the two. An
experiment also states its sample and the smallest effect that it could have detected.
"""

import difflib
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from aiayn.errors import InputError
from aiayn_book.html import STYLE, escape, show, site_address

Kind = Literal["definition", "derivation", "measured result", "conjecture"]
Scale = Literal["derivation", "figures", "paper", "small"]
Verdict = Literal[
    "defined",
    "derived",
    "consistent with the paper's own figures",
    "reproduced",
    "reproduced at small scale",
    "not reproduced at small scale",
    "contradicted",
    "reported by the paper only",
    "open",
]
KINDS: tuple[str, ...] = get_args(Kind)
VERDICTS: tuple[str, ...] = get_args(Verdict)

_VERDICT_WHEN_IT_HOLDS: dict[Scale, Verdict] = {
    "derivation": "derived",
    "figures": "consistent with the paper's own figures",
    "paper": "reproduced",
    "small": "reproduced at small scale",
}
# A small experiment that finds nothing refutes nothing at the paper's scale.
_VERDICT_WHEN_IT_FAILS: dict[Scale, Verdict] = {
    "derivation": "contradicted",
    "figures": "contradicted",
    "paper": "contradicted",
    "small": "not reproduced at small scale",
}
_SCALE_IN_WORDS: dict[Scale, str] = {
    "derivation": "by derivation",
    "figures": "by the paper's own figures",
    "paper": "at the paper's scale",
}
BY_EXPERIMENT = ("reproduced at small scale", "not reproduced at small scale")


# One line until it is unfolded: of a long claim, only the beginning stands in it.
_STYLE = """<style>
.aiayn details.aiayn-claim { margin: .8rem 0; line-height: 1.5; }
.aiayn-claim > summary { display: flex; gap: .5em; align-items: baseline;
  cursor: pointer; font-weight: 400 !important; }
.aiayn-claim > summary > span:first-child, .aiayn-claim > summary > em { flex: none; }
.aiayn-claim > summary > em { font-weight: 600; max-width: calc(100% - 7.5em); }
.aiayn-claim .aiayn-what { flex: 0 1 auto; min-width: 0; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; }
.aiayn-claim[open] .aiayn-what { visibility: hidden; }
:where(.aiayn-claim > summary)::before { content: "▸"; }
:where(.aiayn-claim[open] > summary)::before { content: "▾"; }
.aiayn-claim p { margin: .3rem 0; }
.aiayn-claim a { color: inherit; }
</style>"""


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, as the data file holds it."""

    id: str  # section and a word: "s3.2.1-variance"
    section: str  # as the paper numbers it: "3.2.1", "abstract", "figure 3"
    kind: Kind
    text: str  # what the paper claims, in our words
    chapter: str  # the notebook that settles it: "04-scaling"
    verdict: Verdict  # what the build must find; "open" until a chapter settles it
    code: str = ""  # of a definition: where the package does it, as module.name

    @property
    def place(self) -> str:
        """Where in the paper, as one writes it."""
        return f"§{self.section}" if self.section[0].isdigit() else self.section

    @property
    def anchor(self) -> str:
        """The HTML identifier of the output that settles this claim."""
        return "claim-" + self.id.replace(".", "-")


@dataclass(frozen=True)
class Settlement:
    """A claim beside what was measured, and the verdict that follows."""

    claim: Claim
    holds: bool | None
    measured: str
    expected: str
    scale: Scale
    sample: str = ""  # of an experiment: how many seeds, sentences or timings
    detects: str = ""  # the smallest effect that it could have detected

    @property
    def verdict(self) -> Verdict:
        """The verdict that the measurement gives."""
        if self.holds is None:
            return "reported by the paper only"
        if self.claim.kind == "definition" and self.scale == "derivation":
            # A definition is neither proved nor refuted: our code follows it, or not.
            return "defined" if self.holds else "open"
        table = _VERDICT_WHEN_IT_HOLDS if self.holds else _VERDICT_WHEN_IT_FAILS
        return table[self.scale]

    @property
    def verdict_in_words(self) -> str:
        """The verdict, and for a contradiction how it was found."""
        return in_words(self.verdict, self.scale)

    def _lines(self) -> list[tuple[str, str]]:
        lines = [
            ("Expected", self.expected),
            ("Measured", self.measured),
            ("Sample", self.sample),
            ("Could have detected", self.detects),
            ("Verdict", self.verdict_in_words),
        ]
        return [(name, text) for name, text in lines if text]

    def __repr__(self) -> str:
        head = f"Claim {self.claim.id} ({self.claim.place}, {self.claim.kind})"
        rows = [f"  {name}: {text}" for name, text in self._lines()]
        return "\n".join([head, f"  {self.claim.text}", *rows])

    def _repr_html_(self) -> str:
        colour = {
            "contradicted": "alert",
            "not reproduced at small scale": "neutral",
            "reported by the paper only": "neutral",
        }
        role = colour.get(self.verdict, "value")
        rows = "".join(
            f"<p><strong>{name}.</strong> {escape(text)}</p>"
            for name, text in self._lines()[:-1]  # the summary has the verdict
        )
        ledger = f"{site_address()}book/ledger.html#ledger-{self.claim.anchor}"
        # The data attributes are what the build reads: see aiayn_book.ledger.
        return (
            f'<div class="aiayn">{STYLE}{_STYLE}'
            f'<details class="aiayn-claim" id="{self.claim.anchor}"'
            f' data-claim="{escape(self.claim.id)}"'
            f' data-verdict="{escape(self.verdict)}"'
            f' data-scale="{self.scale}" data-measured="{escape(self.measured)}"'
            f' data-expected="{escape(self.expected)}"'
            f' data-sample="{escape(self.sample)}"'
            f' data-detects="{escape(self.detects)}">'
            f"<summary><span>Claim {escape(self.claim.place)}:</span> "
            f'<span class="aiayn-what">{escape(self.claim.text)}</span> '
            f'<em style="color: var(--aiayn-{role})">'
            f"{escape(self.verdict_in_words)}</em>"
            f"</summary><p>{escape(self.claim.text)} ({self.claim.kind})</p>{rows}"
            f'<p><a href="{ledger}">This claim in the ledger</a></p></details></div>'
        )


def in_words(verdict: str, scale: str) -> str:
    """A verdict as it is shown everywhere: a contradiction always says by what."""
    if verdict == "contradicted" and scale in _SCALE_IN_WORDS:
        return f"contradicted {_SCALE_IN_WORDS[scale]}"
    return verdict


@cache
def claims() -> dict[str, Claim]:
    """All claims by identifier, in the order of the paper."""
    text = files("aiayn_book").joinpath("claims.json").read_text(encoding="utf-8")
    return {entry["id"]: Claim(**entry) for entry in json.loads(text)}


def find_claim(claim_id: str) -> Claim:
    """The claim with this identifier.

    Raises:
        InputError: there is none; the message lists identifiers that look alike.
    """
    if claim_id in claims():
        return claims()[claim_id]
    near = difflib.get_close_matches(claim_id, claims(), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "none looks like it."
    raise InputError(
        f"claim_id is {claim_id!r}, but the ledger (claims.json) has no such claim: "
        f"{hint}"
    )


def judge(
    claim_id: str,
    *,
    holds: Any,
    measured: str,
    expected: str = "",
    scale: Scale = "small",
    sample: str = "",
    detects: str = "",
) -> Settlement:
    """Weigh a measurement against a claim; `settle` also shows the result."""
    if scale not in _VERDICT_WHEN_IT_HOLDS:
        raise InputError(
            f"scale is {scale!r}, but 'derivation', 'figures', 'paper' or 'small' was "
            "expected: how far does the measurement reach?"
        )
    if not measured.strip():
        raise InputError(
            f"measured is empty: say what was measured for {claim_id!r}, in numbers "
            "where there are any, or, with holds=None, why it was not."
        )
    truth = None if holds is None else _as_bool(holds)
    claim = find_claim(claim_id)
    return Settlement(claim, truth, measured, expected, scale, sample, detects)


def settle(
    claim_id: str,
    *,
    holds: Any,
    measured: str,
    expected: str = "",
    scale: Scale = "small",
    sample: str = "",
    detects: str = "",
) -> None:
    """Settle a claim of the paper and show its verdict.

    Args:
        claim_id: as in the ledger, such as ``"s3.2.1-variance"``.
        holds: the outcome of the measurement, an expression that is true or false;
            None where the paper's experiment is out of reach, or what was measured
            decides nothing, so that the claim stays *reported by the paper only*.
        measured: what was measured, with its numbers, computed in an f-string.
        expected: what the paper, or a derivation, leads one to expect.
        scale: how far the measurement reaches: ``"derivation"`` (a proof, a count, or
            an identity that was checked; of a definition, that our code follows it),
            ``"figures"`` (arithmetic on the paper's own figures), ``"paper"`` (an
            experiment in the paper's own setting) or ``"small"`` (an experiment with a
            smaller model or on another corpus).
        sample: of an experiment, how many seeds, sentences or timings it rests on.
        detects: of an experiment, the smallest effect that it could have detected.

    Raises:
        InputError: the claim is unknown or the outcome is neither true nor false.
    """
    show(
        judge(
            claim_id,
            holds=holds,
            measured=measured,
            expected=expected,
            scale=scale,
            sample=sample,
            detects=detects,
        )
    )


def _as_bool(holds: Any) -> bool:
    """A truth value, also from NumPy and torch, but not from a number or a text."""
    try:
        value = holds.item() if hasattr(holds, "item") else holds
    except (RuntimeError, ValueError):  # torch's and NumPy's for several elements
        value = None
    if not isinstance(value, bool):
        raise InputError(
            f"holds is {holds!r}, but a truth value was expected: write the comparison "
            "that decides, such as holds=error < 1e-6; with several, say .all() or "
            ".any()."
        )
    return value
