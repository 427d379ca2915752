"""The API reference: every public name is there, and explained."""

import importlib

import pytest

import aiayn
from aiayn_site import api_signature, api_source

ENTRIES = api_source.entries()
NO_CHAPTER = {"aiayn.InputError"}  # no chapter is about mistakes in what one types


def test_the_reference_has_every_public_name_once():
    """A new name must be given its place in book/data/api.yml."""
    exported = {
        (module.path, name)
        for module in api_source.packages()
        for name in api_source.exports(module)
    }
    packages = {module for module, _ in exported} - {"aiayn"}
    elsewhere = {name for module, name in exported if module in packages}
    wanted = {(m, n) for m, n in exported if m != "aiayn" or n not in elsewhere}
    planned = [
        (module, name)
        for module, groups in api_source.plan().items()
        for group in groups
        for name in group["names"]
    ]
    assert sorted(planned) == sorted(wanted)


def test_griffe_reads_the_exports_as_python_does():
    """The reference is made without importing; it must not miss a name."""
    for module in api_source.packages():
        imported = importlib.import_module(module.path)
        names = getattr(imported, "__all__", None)
        if names is not None:
            assert api_source.exports(module) == set(names)


@pytest.mark.parametrize("path", ENTRIES)
def test_every_name_has_a_summary_and_a_place_in_the_paper(path):
    """One line; and the section, or that the paper has none."""
    found = ENTRIES[path]
    assert 10 < len(found.summary) < 200
    assert found.summary.endswith((".", ":"))
    assert found.place, f"{path}: add 'Paper: §…' or 'Not in the paper.'"


@pytest.mark.parametrize("name", sorted(aiayn.__all__))
def test_what_one_imports_first_has_a_chapter_and_an_example(name):
    """What the example says is tested in tests/test_examples.py."""
    path = f"aiayn.{name}"
    assert ENTRIES[path].chapter or path in NO_CHAPTER
    assert ">>> " in ENTRIES[path].source.docstring.value


@pytest.mark.parametrize("path", ENTRIES)
def test_every_argument_and_field_is_explained(path):
    """What the signature names, the docstring explains."""
    thing = ENTRIES[path].source
    if thing.is_attribute or "arguments as `" in thing.docstring.value:
        return
    explained = {
        item.name
        for part in (thing.docstring.parsed if thing.docstring else ())
        if part.kind.value in ("parameters", "attributes")
        for item in part.value
    }
    explained |= {f.name for f in api_source.fields(thing)} if thing.is_class else set()
    named = {p.name for p in thing.parameters} - {"self", "cls"}
    assert named <= explained, f"{path}: explain {sorted(named - explained)}"


def test_what_is_returned_begins_with_no_single_word_and_colon():
    """Griffe would take *Logits: …* for a name, and the page would lose the word."""
    for entry in ENTRIES.values():
        whole = [entry.source, *entry.source.members.values()]
        for thing in (one for one in whole if one.docstring and not one.is_alias):
            for part in thing.docstring.parsed:
                if part.kind.value in ("returns", "yields"):
                    assert not any(item.name for item in part.value), thing.path


def test_signatures_keep_their_shapes_and_fit_a_phone():
    """A shape is a string that Griffe takes for a name where it could be one."""
    text = api_signature.signature(
        ENTRIES["aiayn.label_smoothed_cross_entropy"].source, "f"
    )
    assert 'target: Int[Tensor, "..."],' in text
    text = api_signature.signature(ENTRIES["aiayn.translate"].source, "translate")
    assert text.startswith("translate(\n    lines: Iterable[str],")
    assert "    *,\n    beam_size: int = 4," in text
    assert text.endswith(") -> list[str]")
    longest = max(map(len, text.splitlines()))
    assert longest <= api_signature.WIDTH


def test_a_result_of_several_tensors_is_folded():
    """One part a line, and no bracket is lost."""
    source = ENTRIES["aiayn.scaled_dot_product_attention"].source
    text = api_signature.signature(source, "f")
    assert ') -> tuple[\n    Float[Tensor, "*#batch queries d_v"],\n' in text
    assert text.count("[") == text.count("]")
    assert text.count("(") == text.count(")")


@pytest.mark.parametrize("path", ENTRIES)
def test_no_signature_loses_a_bracket(path):
    """Neither a name's nor that of any of its methods."""
    thing = ENTRIES[path].source
    methods = api_source.members(thing) if thing.is_class else ()
    for one in (thing, *methods):
        text = api_signature.signature(one, one.name)
        assert one.name in text
        assert all(text.count(a) == text.count(b) for a, b in ("()", "[]"))
