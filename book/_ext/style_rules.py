"""Style sheets without the rules that no page can use.

The themes bring rules for hundreds of things that this book has not. A rule stays if
one of its selectors names only classes that a page or a script mentions; what has no
class stays in any case.
"""

import re

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[{}]')
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
# What stands in brackets is one of several, or must not be, or an attribute's value.
BRACKETS = re.compile(r"\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\]")
HOLDS_RULES = ("@media", "@supports", "@layer", "@container")
CLASS_ATTRIBUTE = re.compile(r'\bclass="([^"]*)"')
SCRIPT = re.compile(r"<script\b[^>]*>(.*?)</script>", re.DOTALL)
WORD = re.compile(r"[A-Za-z_][\w-]*")


def words_of_page(page: str) -> set[str]:
    """The classes of a page's elements, and all words of the scripts in it."""
    classes = {
        name for names in CLASS_ATTRIBUTE.findall(page) for name in names.split()
    }
    return classes.union(*map(words_of_script, SCRIPT.findall(page)))


def words_of_script(script: str) -> set[str]:
    """Everything that a script could use as the name of a class."""
    return set(WORD.findall(script))


def usable(sheet: str, words: set[str]) -> str:
    """The sheet without comments, and without rules whose classes nobody mentions."""
    kept = []
    for head, body in _blocks(COMMENT.sub("", sheet)):
        start = head.strip()
        if body is None:
            kept.append(head)
        elif start.startswith(HOLDS_RULES):
            inner = usable(body, words)
            kept.append(f"{head}{{{inner}}}" if inner.strip() else "")
        elif start.startswith("@") or _is_usable(start, words):
            kept.append(f"{head}{{{body}}}")
    return "".join(kept)


def _is_usable(selectors: str, words: set[str]) -> bool:
    return any(
        "\\" in selector or words.issuperset(CLASS.findall(selector))
        for selector in BRACKETS.sub("", selectors).split(",")
    )


def _blocks(sheet: str):
    """What stands before each outer brace, and in it; at last what is behind them."""
    begin, depth, opened = 0, 0, 0
    for token in TOKEN.finditer(sheet):
        if token[0] == "{":
            opened = opened if depth else token.start()
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 0:
                yield sheet[begin:opened], sheet[opened + 1 : token.start()]
                begin = token.end()
    yield sheet[begin:], None
