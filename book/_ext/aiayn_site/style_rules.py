"""Style sheets without the rules that no page can use.

The themes bring rules for hundreds of things that this book has not. A selector stays
if it names only classes that a page or a script mentions; what has no class stays in
any case. Of the themes' variables and animations those stay that something asks for.
"""

import re

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[{}]')
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
SELECTOR_PART = re.compile(r'"[^"]*"|\'[^\']*\'|[^"\'(),\[\]]+|.')
# What stands in brackets is one of several, or must not be, or an attribute's value.
BRACKETS = re.compile(r"\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\]")
# One of the themes' variables, if its value is simple enough to see where it ends.
VARIABLE = re.compile(
    r"(--(?:bs|fa|mystnb|pst|sbt|sd)-[\w-]+)\s*:"
    r"((?:\"[^\"]*\"|'[^']*'|\((?:[^()\"']|\"[^\"]*\"|'[^']*'|\([^()]*\))*\)"
    r"|[^;{}\"'()])*)(?:;|(?=\}))"
)
VARIABLE_NAME = re.compile(r"--[A-Za-z][\w-]*")
ANIMATION = re.compile(r"@(?:-\w+-)?keyframes\s+([\w-]+)")
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
        elif start.startswith("@"):
            kept.append(f"{head}{{{body}}}")
        elif left := [one for one in _selectors(start) if _is_usable(one, words)]:
            kept.append(f"\n{','.join(left)}{{{body}}}")
    return "".join(kept)


def asked_for(sheet: str, elsewhere: str) -> str:
    """The sheet without the themes' variables and animations that nothing names.

    Args:
        elsewhere: What else could name a variable: pages, scripts, other style sheets.
    """
    foreign, before = set(VARIABLE_NAME.findall(elsewhere)), ""
    while before != sheet:  # some were named only by others that went
        before = sheet
        named = foreign | set(VARIABLE_NAME.findall(VARIABLE.sub(r"\2", sheet)))
        sheet = VARIABLE.sub(lambda one, n=named: one[0] if one[1] in n else "", sheet)
    words = set(WORD.findall(ANIMATION.sub("", sheet)))
    return "".join(
        head if body is None else f"{head}{{{body}}}"
        for head, body in _blocks(sheet)
        if not (name := ANIMATION.search(head)) or name[1] in words
    )


def _selectors(list_: str) -> list[str]:
    """The selectors between the commas that stand in no bracket and no quotation."""
    found, depth = [""], 0
    for part in SELECTOR_PART.findall(list_):
        depth += (part in "([") - (part in ")]")
        if part == "," and not depth:
            found.append("")
        else:
            found[-1] += part
    return [selector.strip() for selector in found]


def _is_usable(selector: str, words: set[str]) -> bool:
    named = CLASS.findall(BRACKETS.sub("", selector))
    return "\\" in selector or words.issuperset(named)


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
