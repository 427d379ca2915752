"""Quick checks: a question with several answers, each with a reply of its own.

The widget is a plain HTML form with a few lines of script: it needs no library and no
network, works by keyboard, and tells a screen reader the reply. Its identifier comes
from the question, so that the same notebook gives the same page.
"""

import hashlib
import json
from collections.abc import Mapping

from aiayn.errors import InputError
from aiayn_book.html import STYLE, escape

_QUIZ_STYLE = """<style>
.aiayn-quiz fieldset { border: 0; margin: 0; padding: 0; min-width: 0; }
.aiayn-quiz legend { font-weight: 600; font-size: 1em; padding: 0; margin: 0 0 .4rem;
  float: none; width: auto; }
.aiayn-quiz label { display: flex; gap: .6rem; padding: .35rem .2rem; cursor: pointer; }
.aiayn-quiz input { flex: none; margin: .25rem 0 0; width: 1.1em; height: 1.1em;
  accent-color: var(--aiayn-key); }
.aiayn-quiz button { font: inherit; color: inherit; background: transparent;
  border: 1px solid currentColor; border-radius: .3rem; padding: .3rem .9rem;
  margin-top: .4rem; cursor: pointer; min-height: 2.2rem; }
.aiayn-quiz input:focus-visible, .aiayn-quiz button:focus-visible {
  outline: 2px solid var(--aiayn-key); outline-offset: 2px; }
.aiayn-quiz [role=status] { min-height: 1.5em; margin: .5rem 0 0; }
.aiayn-quiz[data-state=right] { border-color: var(--aiayn-value); }
.aiayn-quiz[data-state=wrong] { border-color: var(--aiayn-alert); }
</style>"""

_SCRIPT = """<script>
(() => {
  const form = document.getElementById("%(id)s");
  const replies = %(replies)s;
  form.addEventListener("submit", event => {
    event.preventDefault();
    const chosen = form.querySelector("input:checked");
    const reply = chosen ? replies[Number(chosen.value)] : null;
    form.dataset.state = reply ? (reply.right ? "right" : "wrong") : "";
    form.querySelector("[role=status]").textContent =
      reply ? (reply.right ? "Right. " : "Not quite. ") + reply.text
            : "Choose one of the answers first.";
  });
})();
</script>"""


class Quiz:
    """One multiple-choice question, shown as a form or, without HTML, as text."""

    def __init__(self, question: str, answers: Mapping[str, str], correct: str) -> None:
        self.question = question
        self.answers = dict(answers)
        self.correct = correct
        digest = hashlib.sha256(question.encode()).hexdigest()
        self.id = f"quiz-{digest[:8]}"

    def _repr_html_(self) -> str:
        rows = "\n".join(
            f'<label><input type="radio" name="{self.id}" value="{number}">'
            f"<span>{escape(answer)}</span></label>"
            for number, answer in enumerate(self.answers)
        )
        return f"""<div class="aiayn">{STYLE}{_QUIZ_STYLE}
<form class="aiayn-box aiayn-quiz" id="{self.id}" onsubmit="return false">
<fieldset><legend>Quick check. {escape(self.question)}</legend>
{rows}
</fieldset>
<button type="submit">Check</button>
<p role="status" aria-live="polite"></p>
</form>{self._script()}</div>"""

    def _script(self) -> str:
        replies = [
            {"right": answer == self.correct, "text": reply}
            for answer, reply in self.answers.items()
        ]
        # "</" inside a script would end it, and "<!--" would hide its end.
        safe = json.dumps(replies, ensure_ascii=False).replace("<", "\\u003c")
        return _SCRIPT % {"id": self.id, "replies": safe}

    def __repr__(self) -> str:
        letters = "abcdefghij"
        lines = [f"Quick check. {self.question}"]
        lines += [
            f"  ({letter}) {answer}"
            for letter, answer in zip(letters, self.answers, strict=False)
        ]
        number = list(self.answers).index(self.correct)
        lines += [f"Answer: ({letters[number]}) {self.answers[self.correct]}"]
        return "\n".join(lines)


def quick_check(question: str, answers: Mapping[str, str], *, correct: str) -> Quiz:
    """A multiple-choice question; leave it as a cell's last line to show it.

    Write mathematics in Unicode (√dₖ, QKᵀ): formulas are not typeset here.

    Args:
        question: one sentence, ending in a question mark.
        answers: two to six answers in the order shown, each with the reply that a
            reader who chooses it gets: why it is right, or what to look at again.
        correct: the right one, word for word as in `answers`.

    Returns:
        The widget.

    Raises:
        InputError: too few or too many answers, or `correct` is none of them.
    """
    if not 2 <= len(answers) <= 6:
        raise InputError(
            f"A quick check needs two to six answers, but {question!r} has "
            f"{len(answers)}: add or remove some in `answers`."
        )
    if correct not in answers:
        raise InputError(
            f"`correct` is {correct!r}, which is none of the answers to {question!r}: "
            "copy one of the keys of `answers` word for word."
        )
    if silent := [answer for answer, reply in answers.items() if not reply.strip()]:
        raise InputError(
            f"The answer {silent[0]!r} has no reply: say in `answers` why it is right, "
            "or what to look at again."
        )
    return Quiz(question, answers, correct)
