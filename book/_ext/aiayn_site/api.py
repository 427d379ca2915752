"""The directives ``{api} aiayn.model`` and ``{api-index}``: the package's reference.

Drawn from the docstrings at every build; see `api_source`. Each name is an object of
Sphinx's Python domain too, so the search finds it and other sites can link to it.
"""

import re
from collections.abc import Iterable, Iterator

import griffe
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

from aiayn_site.api_signature import field, signature
from aiayn_site.api_source import (
    SOURCE,
    Entry,
    entries,
    entry,
    exports,
    fields,
    members,
    package,
    plan,
    split_place,
)
from aiayn_site.reference_pages import PageOfSections

LABELS = {
    "parameters": "Arguments",
    "other parameters": "Arguments",
    "attributes": "Fields",
    "returns": "Returns",
    "yields": "Yields",
    "raises": "Raises",
}
NAMELESS = ("returns", "yields")
DOCTEST = re.compile(r"^>>> ")


class ApiDirective(PageOfSections):
    """What the two directives have in common."""

    def markdown(self, text: str) -> list[nodes.Node]:
        """A docstring's text, as the pages' own."""
        box = nodes.container()
        self.state.nested_parse(StringList(text.splitlines()), 0, box)
        for literal in list(box.findall(nodes.literal)):
            path = path_of(literal.astext())
            if path:
                literal.replace_self(link(path, literal.deepcopy(), self.env.docname))
        return box.children


class Api(ApiDirective):
    """One package's public names, under the headings of the plan."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = self.arguments[0]
        return [self._group(module, group) for group in plan()[module]]

    def _group(self, module: str, group: dict) -> nodes.section:
        drawn = [
            self._entry(entry(module, name, chapter))
            for name, chapter in group["names"].items()
        ]
        return self.section(group["title"], *drawn)

    def _entry(self, one: Entry) -> nodes.section:
        section = nodes.section("", nodes.title("", "", nodes.literal("", one.name)))
        section["classes"].append("api-entry")
        self._register(section, one.path, one.source)
        section += self._where(one)
        section += code(signature(one.source, one.name), "api-signature")
        section += list(self._docstring(one.source))
        if isinstance(one.source, griffe.Class):
            section += list(self._fields(one.source))
            section += [self._member(one, member) for member in members(one.source)]
        return section

    def _register(self, node: nodes.Element, path: str, thing: griffe.Object) -> None:
        node["ids"].append(path)
        kinds = {"attribute": "data", "class": "class", "function": "function"}
        kind = "method" if thing.parent and thing.parent.is_class else kinds[thing.kind]
        domain = self.env.get_domain("py")
        domain.note_object(path, kind, path, location=node)

    def _where(self, one: Entry) -> nodes.paragraph:
        """The full name; the paper's section; the chapter; the source."""
        place, _ = self.parse_inline(one.place.removesuffix("."))
        if one.place.startswith(("§", "Figure", "Table", "Appendix")):
            place = [nodes.Text("Paper: "), *place]
        parts = [[nodes.literal("", one.path)], place]
        if one.chapter:
            name = one.chapter.partition("#")[0]
            parts.append([self.place(one.chapter, self.title(name))])
        parts.append([nodes.reference("", "source", refuri=self._address(one.source))])
        made = nodes.paragraph(classes=["api-where"])
        for number, part in enumerate(filter(None, parts)):
            made += [nodes.Text(" · ")] if number else []
            made += part
        return made

    def _address(self, thing: griffe.Object) -> str:
        """The lines that define it, at the repository's one address."""
        theme = self.config.html_theme_options
        file = thing.filepath.relative_to(SOURCE.parent).as_posix()
        lines = f"#L{thing.lineno}-L{thing.endlineno}"
        branch = theme["repository_branch"]
        return f"{theme['repository_url'].rstrip('/')}/blob/{branch}/{file}{lines}"

    def _docstring(self, thing: griffe.Object) -> Iterator[nodes.Node]:
        parts = thing.docstring.parsed if thing.docstring else []
        for number, part in enumerate(parts):
            if part.kind.value == "text":
                if number and ">>> " in part.value:
                    yield label("Example")
                yield from self.markdown(running_text(part.value))
            elif part.kind.value in LABELS:
                yield label(LABELS[part.kind.value])
                named = part.kind.value not in NAMELESS
                yield from self.markdown(items(part.value, named))

    def _fields(self, thing: griffe.Class) -> Iterator[nodes.Node]:
        listed = [
            f"`{field(one)}`\n: {flat(one.docstring.value)}" for one in fields(thing)
        ]
        if listed:
            yield label("Fields")
            yield from self.markdown("\n\n".join(listed))

    def _member(self, one: Entry, thing: griffe.Function) -> nodes.container:
        box = nodes.container(classes=["api-member"])
        self._register(box, f"{one.path}.{thing.name}", thing)
        box += code(signature(thing, thing.name), "api-signature")
        box += list(self._docstring(thing))
        return box


class ApiIndex(ApiDirective):
    """What ``from aiayn import …`` gives, each name with its one line."""

    def run(self) -> list[nodes.Node]:
        top = exports(package())
        made: list[nodes.Node] = []
        for module, groups in plan().items():
            for group in groups:
                names = [name for name in group["names"] if name in top]
                if names:
                    made += [label(group["title"]), self._list(module, names)]
        return made

    def _list(self, module: str, names: Iterable[str]) -> nodes.definition_list:
        found = nodes.definition_list(classes=["api-index"])
        for name in names:
            one = entry(module, name, None)
            name_node = link(one.path, nodes.literal("", one.name), self.env.docname)
            summary = self.markdown(one.summary)
            found += nodes.definition_list_item(
                "", nodes.term("", "", name_node), nodes.definition("", *summary)
            )
        return found


def running_text(text: str) -> str:
    """Markdown without the line on the place; examples become blocks of code."""
    kept = (split_place(part)[0] for part in text.split("\n\n"))
    return "\n\n".join(
        f"```pycon\n{part}\n```" if DOCTEST.match(part) else part for part in kept
    )


def items(found: Iterable, named: bool) -> str:
    """Arguments, fields or exceptions as a list; what is returned as a sentence."""
    if not named:
        return "\n\n".join(flat(one.description) for one in found)
    return "\n\n".join(f"`{name_of(one)}`\n: {flat(one.description)}" for one in found)


def name_of(item: object) -> str:
    """An argument's name, or what an exception is called."""
    return getattr(item, "name", None) or str(item.annotation)


def flat(text: str) -> str:
    """One line."""
    return " ".join(text.split())


def code(text: str, *classes: str) -> nodes.literal_block:
    """A block of Python; its indents are tabs, which are narrower on a phone."""
    text = text.replace(" " * 4, "\t")
    return nodes.literal_block(text, text, language="python", classes=list(classes))


def label(text: str) -> nodes.rubric:
    """A small heading that no table of contents lists."""
    return nodes.rubric("", text, classes=["api-label"])


def path_of(text: str) -> str | None:
    """The documented name that a piece of code means, if it means one."""
    name = text.removesuffix("()")
    known = entries()
    if name in known:
        return name
    return next((path for path in known if path.endswith(f".{name}")), None)


def link(path: str, words: nodes.Node, page: str) -> pending_xref:
    """A link to a name's entry."""
    target = {"refdomain": "py", "reftype": "obj", "reftarget": path, "refdoc": page}
    return pending_xref("", words, **target, refexplicit=True, refwarn=True)


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("api", Api)
    app.add_directive("api-index", ApiIndex)
    app.add_css_file("api.css")
