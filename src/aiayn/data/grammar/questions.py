"""Questions: to be answered by yes or no, or with a question word."""

from aiayn.data.grammar.copulas import DESCRIBED, copula_clause, definite
from aiayn.data.grammar.draw import Draw
from aiayn.data.grammar.english_order import english_question
from aiayn.data.grammar.german_order import german_clause
from aiayn.data.grammar.nouns import nouns_of
from aiayn.data.grammar.phrases import word
from aiayn.data.grammar.verbs import MAIN_VERBS, SHORT_VERBS, verbs_of
from aiayn.data.grammar.whole import Pair, finished

# In the present the sentence begins with any of all the verbs: no form of them is often
# seen with a capital letter.
ASKED = (*("past",) * 4, *("can",) * 2, "want", "should", "future", "present")


def question(draw: Draw) -> Pair:
    """*Does the dog sleep in the garden?*"""
    draw.tags.add("question")
    if draw.chance(0.25):
        noun = draw.noun(nouns_of(DESCRIBED))
        clause = copula_clause(
            draw, definite(draw.noun_phrase(noun, adjective=0.0)), ("present", "past")
        )
        clause.negated = False
    else:
        verb = draw.pick(SHORT_VERBS)
        clause = draw.clause(verb, tenses=ASKED, adjuncts=0.1, negated=0.0)
    _, source = english_question(clause)
    return finished(
        source, lambda: german_clause(clause, "first"), "?", draw.links(1), "SQ"
    )


def wh_question(draw: Draw) -> Pair:
    """*Where does the dog sleep? What does the boy eat? Why …?*"""
    draw.tags.add("question")
    kind = draw.pick(("where", "what", "why", "when"))
    tenses = ("present", "past")
    if kind == "where":
        verb = draw.pick([v for v in MAIN_VERBS if v.name in _WHERE])
        words = ("Where", "Wo" if verb.frame == "where" else "Wohin")
    elif kind == "what":
        verb = draw.pick([v for v in verbs_of("acc") if "person" not in v.objects])
        words = ("What", "Was")
    else:
        verb = draw.pick(SHORT_VERBS)
        words = ("Why", "Warum") if kind == "why" else ("When", "Wann")
    gap = ""
    if kind == "what":
        gap = "accusative"
    elif kind == "where":
        gap = "place" if verb.frame == "where" else "goal"
    clause = draw.clause(verb, tenses=tenses, adjuncts=0.0, negated=0.0, gap=gap)
    link = draw.links(1)
    label, tag = ("WHNP", "WP") if kind == "what" else ("WHADVP", "WRB")
    source = [(label, [word(tag, words[0], link)]), english_question(clause)]
    german_label, german_tag = ("NP", "PWS") if kind == "what" else ("ADVP", "PWAV")
    front = (german_label, [word(german_tag, words[1], link)])
    return finished(
        source,
        lambda: german_clause(clause, "second", front=front),
        "?",
        draw.links(1),
        "SBARQ",
    )


_WHERE = ("live", "stand", "lie", "sit", "go", "run", "jump", "travel")
