"""What a notebook defines inline, held against the library.

A cell that defines something for the first time marks it with a comment::

    # parity: aiayn.model.attention.scaled_dot_product_attention

The definition of that name in the same cell must then be the library's, apart from
docstrings and annotations: a text explains more, a library promises more. A text may
leave out what only guards float16, and what only refuses a bad argument in words of the
library's own: a call of a ``check_…``, an ``if`` that only raises, an ``except`` that
ends with a ``raise``. Its self-attention may be the paper's, where the library's
configuration chooses one of two.
"""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import nbformat

MARK = re.compile(r"^# parity: (?P<place>[\w.]+)\.(?P<name>\w+)$", re.MULTILINE)
MEANT = re.compile(r"^[ \t]*#[ \t]*parity.*", re.MULTILINE | re.IGNORECASE)
# The library chooses its self-attention by the configuration, and a text does not.
TEXTS_NAMES = {"_self_attention": "_attention"}
# The question before what is done for float16 alone.
GUARD = re.compile(r"\w+\.dtype == torch\.float16|TYPE_CHECKING")
# A call that only refuses bad arguments.
CHECK = re.compile(r"_?check_\w+\(.*\)", re.DOTALL)


class _Bare(ast.NodeTransformer):
    """Removes docstrings, annotations, guards; renames what a text names otherwise."""

    def visit_definition(self, node):
        self.generic_visit(node)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if hasattr(node, "returns"):
            node.returns = None
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_definition  # noqa: N815

    def visit_If(self, node):
        self.generic_visit(node)
        guards = GUARD.fullmatch(ast.unparse(node.test))
        guards = guards or all(isinstance(part, ast.Raise) for part in node.body)
        return (node.orelse or None) if guards else node

    def visit_Expr(self, node):
        self.generic_visit(node)
        return None if CHECK.fullmatch(ast.unparse(node)) else node

    def visit_Try(self, node):
        self.generic_visit(node)
        words = all(
            isinstance(handler.body[-1], ast.Raise) for handler in node.handlers
        )
        return node if node.orelse or node.finalbody or not words else node.body

    def visit_Name(self, node):
        node.id = TEXTS_NAMES.get(node.id, node.id)
        return node

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if node.value is None:
            return None
        return ast.Assign(targets=[node.target], value=node.value)


def bare(definition: ast.AST) -> str:
    """A definition's code without docstrings, annotations, comments and layout."""
    return ast.unparse(ast.fix_missing_locations(_Bare().visit(definition)))


def library_definition(place: str, name: str) -> ast.AST:
    """The library's definition of a function or class."""
    thing = getattr(importlib.import_module(place), name)
    return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]


def cell_definition(source: str, name: str) -> ast.AST | None:
    """A cell's definition of ``name``, or None where it has none."""
    # A line magic is no Python.
    python = re.sub(r"^\s*[%!].*$", "", source, flags=re.MULTILINE)
    found = (n for n in ast.parse(python).body if getattr(n, "name", None) == name)
    return next(found, None)


def differences(notebook: Path) -> Iterator[str]:
    """One sentence for each mark that is none, or whose code is not the library's."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        where = f"{notebook.name}, cell {cell.get('id', '?')}"
        for line in MEANT.findall(cell.source):
            if not MARK.fullmatch(line):
                yield f"{where}: {line!r} should read '# parity: module.name'."
        for place, name in MARK.findall(cell.source):
            inline = cell_definition(cell.source, name)
            if inline is None:
                yield f"{where}: marked as parity of {name}, but does not define it."
                continue
            ours, theirs = bare(inline), bare(library_definition(place, name))
            if ours != theirs:
                yield (
                    f"{where}: {name} differs from {place}.{name}.\n"
                    f"--- notebook\n{ours}\n--- library\n{theirs}"
                )
