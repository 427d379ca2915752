"""What a cell's code does with names: which it needs, binds, and may change.

Read from the syntax, in the order in which the statements stand: a name that the cell
has bound by then is no need of it.
"""

import ast
import copy
import re
import symtable
from dataclasses import dataclass, field

MAGIC = re.compile(r"^\s*[%!].*$", re.M)
# Called for what they show; they leave their arguments as they are.
ONLY_SHOW = {"print", "quick_check", "settle", "display", "assert_close"}


@dataclass
class Names:
    """The names on a cell's outermost level."""

    bound: set[str] = field(default_factory=set)
    imported: dict[str, str] = field(default_factory=dict)  # name: its statement
    changed: set[str] = field(default_factory=set)  # their objects, perhaps
    needed: set[str] = field(default_factory=set)  # when the cell runs
    needed_later: set[str] = field(default_factory=set)  # when its functions run

    def read(self, node: ast.AST) -> None:
        """Take in a statement or an expression, in the order of evaluation."""
        match node:
            case ast.Name(name, ast.Load()):
                self.needed |= {name} - self.bound
            case ast.Name(name):
                self.bound.add(name)
            case ast.Import(aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    name = alias.asname or alias.name.partition(".")[0]
                    one = copy.copy(node)
                    one.names = [alias]
                    self.imported[name] = ast.unparse(one)
                    self.bound.add(name)
            case ast.FunctionDef() | ast.Lambda():
                self._read_function(node)
            case ast.ClassDef():
                self._read_all([*node.decorator_list, *node.bases])
                self.needed_later |= _free(node)
                self.bound.add(node.name)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self.needed |= _free(node) - self.bound
            case ast.Assign(targets, value):
                self._read_all([value, *targets])
                self.changed |= {_root(t) for t in targets if not _is_name(t)}
            case ast.AugAssign(target, _, value):
                self.needed |= {_root(target)} - self.bound - {""}
                self._read_all([value, target])
                self.changed.add(_root(target))
            case ast.For(target, steps):
                self._read_all([steps, target, *node.body, *node.orelse])
            case ast.Expr(ast.Call() as call) if not _only_shows(call):
                self._read_all([call])
                parts = [*call.args, *(k.value for k in call.keywords)]
                if not isinstance(call.func, ast.Name):
                    parts.append(call.func)  # a method may change its object
                self.changed |= {_root(part) for part in parts}
            case _:
                self._read_all(ast.iter_child_nodes(node))

    def _read_all(self, nodes) -> None:
        for node in nodes:
            self.read(node)

    def _read_function(self, node: ast.FunctionDef | ast.Lambda) -> None:
        defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        self._read_all(defaults)
        self.needed_later |= _free(node) - self.bound
        if not isinstance(node, ast.Lambda):
            self._read_all(node.decorator_list)
            self.bound.add(node.name)


def names_of(source: str) -> Names:
    """The names of a cell."""
    body = ast.parse(MAGIC.sub("", source)).body
    names = Names()
    for statement in body:
        names.read(statement)
    # What a cell shows at its end is made from its arguments, as a chart is.
    match body:
        case [*others, ast.Expr(ast.Call(ast.Name()))]:
            without = Names()
            for statement in others:
                without.read(statement)
            names.changed = without.changed
    names.changed.discard("")
    return names


def _free(node: ast.AST) -> set[str]:
    """Names that a function, a class or a comprehension takes from outside."""
    text = ast.unparse(node)
    table = symtable.symtable(text, "cell", "exec")
    inner = set().union(*(_global_names(child) for child in table.get_children()))
    # A comprehension's first iterable is evaluated outside.
    outer = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    return inner | outer


def _global_names(table: symtable.SymbolTable) -> set[str]:
    found = {s.get_name() for s in table.get_symbols() if s.is_global()}
    return found.union(*(_global_names(inner) for inner in table.get_children()))


def _only_shows(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] in ONLY_SHOW


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Tuple | ast.List)


def _root(node: ast.expr) -> str:
    """The name that an expression such as ``model.layers[0].weight`` begins with.

    What a function gives back is nobody's part: ``f(x)`` begins with no name.
    """
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Call):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return ""
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
