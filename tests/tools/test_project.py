"""The project's own consistency: addresses, lists of chapters, what records name."""

import subprocess
import sys

import pytest
import yaml

from aiayn_site import chapters
from tools import project
from tools.records import changes, heads, live, optimizers, parsing, run, scaling
from tools.site import audit, book_pdf, readme
from tools.site.slides import make as make_slides


def test_the_repositorys_address_stands_in_one_place():
    """Besides _config.yml only notebooks hold it, where `make format` writes it.

    And the citation file and the package's metadata, which people get without the rest;
    `make rebrand` knows.
    """
    address, _ = project.repository()
    place = address.removeprefix("https://github.com/")
    found = subprocess.run(
        ["git", "grep", "-lF", place], cwd=project.ROOT, capture_output=True, text=True
    )
    if found.returncode > 1:
        pytest.skip("This is no git checkout.")
    files = {name for name in found.stdout.split() if not name.endswith(".ipynb")}
    assert files == {"_config.yml", "CITATION.cff", "pyproject.toml"}


def test_every_notebook_is_a_page_and_a_chapter():
    """A notebook that _toc.yml or the table of chapters forgets would stay unseen."""
    toc = yaml.safe_load((project.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    pages = {c["file"] for part in toc["parts"] for c in part["chapters"]}
    planned = [c["name"] for part in chapters.parts() for c in part["chapters"]]
    written = {path.stem for path in project.notebook_paths()}
    assert {f"notebooks/{name}" for name in written} <= pages
    assert written <= set(planned)
    assert planned == sorted(planned)


def test_readme_links_what_is_written(tmp_path):
    """The table names all chapters and links those that have a notebook."""
    (tmp_path / "book" / "data").mkdir(parents=True)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "03-attention.ipynb").touch()
    text = (project.ROOT / "book" / "data" / "chapters.yml").read_text(encoding="utf-8")
    (tmp_path / "book" / "data" / "chapters.yml").write_text(text, encoding="utf-8")
    new = readme.updated(
        "Above\n<!-- chapters -->\nold\n<!-- /chapters -->\nBelow",
        "chapters",
        readme.table(tmp_path),
    )
    assert new.startswith("Above\n")
    assert new.endswith("\nBelow")
    assert "old" not in new
    assert "[Attention](notebooks/03-attention.ipynb)" in new
    assert "| 4 | Scaling |" in new
    assert readme.updated(new, "chapters", readme.table(tmp_path)) == new


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository of one commit, and a way to call git in it."""

    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@localhost")
        command = ["git", *who, "-c", "commit.gpgSign=false", *words]
        done = subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    (tmp_path / "src").mkdir()
    for name in ("src/code.py", "src/record.json", "page.md"):
        (tmp_path / name).write_text("{}\n")
    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", "one")
    monkeypatch.setattr(project, "ROOT", tmp_path)
    return tmp_path, git


def test_a_record_names_the_commit_that_its_code_is_of(repository):
    """Records and pages may differ from it; code may not, added to git or not."""
    root, git = repository
    first = git("rev-parse", "HEAD")
    (root / "src" / "record.json").write_text("[]\n")
    (root / "page.md").write_text("More.\n")
    assert project.commit() == project.commit(first[:8]) == first
    with pytest.raises(SystemExit, match=r"page\.md: not as in commit"):
        project.commit(places=["page.md"])
    (root / "src" / "code.py").write_text("x = 1\n")
    for words in (("status",), ("add", "--all")):
        git(*words)
        with pytest.raises(SystemExit, match=f"src, tools: not as in .*{first[:10]}"):
            project.commit()
    git("commit", "--quiet", "--message", "two")
    assert project.commit() == git("rev-parse", "HEAD") != first
    with pytest.raises(SystemExit, match="check that commit out"):
        project.commit(first)


def test_without_a_commit_there_is_a_sentence_and_no_record(
    repository, tmp_path_factory, monkeypatch
):
    """An unknown name, a folder without a repository, a machine without git."""
    with pytest.raises(SystemExit, match="git finds no commit 'nothing' here"):
        project.commit("nothing")
    monkeypatch.setattr(project, "ROOT", tmp_path_factory.mktemp("bare"))
    with pytest.raises(SystemExit, match="git finds no commit 'HEAD' here"):
        project.commit()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="git finds no commit 'HEAD' here"):
        project.commit()


def test_a_record_goes_on_only_with_what_it_began_with(tmp_path):
    """The command may change: it can name the runs."""
    path = tmp_path / "r.json"
    head = {"command": "a", "commit": "1", "machine": {"cores": 2}, "seeds": (1, 2)}
    new = project.continued(path, head)
    assert new == head | {"runs": []}
    new["runs"].append({"loss": 1.5})
    path.write_text(project.json.dumps(new))
    found = project.continued(path, head | {"command": "b"})
    assert found["runs"] == [{"loss": 1.5}]
    other = {"commit": "2", "machine": {"cores": 4}}
    with pytest.raises(SystemExit, match=r"another commit and another machine, so"):
        project.continued(path, head | other)


@pytest.mark.parametrize(
    ("tool", "work"),
    [
        (changes, "run_one"),
        (heads, "run"),
        (optimizers, "run_one"),
        (parsing, "run_one"),
        (scaling, "train_size"),
    ],
)
def test_the_books_record_takes_no_run_by_other_code(tool, work, monkeypatch):
    """Each of them would stand under a commit that did not make it."""
    monkeypatch.setattr(tool, "commit", lambda: "another")
    monkeypatch.setattr(tool, "PAIRS", 20, raising=False)  # sentences for the heads
    monkeypatch.setattr(tool, "write_json", lambda *_: pytest.fail("It was written."))
    monkeypatch.setattr(tool, work, lambda *_: pytest.fail("It was trained."))
    monkeypatch.setattr(sys, "argv", ["", *(["1"] if tool is heads else [])])
    with pytest.raises(SystemExit, match=f"{tool.RECORD.name} .*another commit"):
        tool.main()


def test_an_interrupted_record_lacks_what_was_not_done(tmp_path, monkeypatch, capsys):
    """A training is whole, with its whole cost, or it is done once more."""
    asked, stopped = [], []

    def run_one(config):
        if len(asked) == 2 and not stopped:
            stopped.append(config.output)
            raise KeyboardInterrupt
        asked.append(str(config.output))
        return {
            "config": config.as_dict() | {"output": asked[-1]},
            "scores": {"test": 1},
        }

    monkeypatch.setattr(parsing, "RECORD", tmp_path / "parsing.json")
    monkeypatch.setattr(parsing, "commit", lambda: "1")
    monkeypatch.setattr(parsing, "lengths", lambda name: {})
    monkeypatch.setattr(parsing, "run_one", run_one)
    with pytest.raises(KeyboardInterrupt):
        parsing.main()
    parsing.main()
    assert asked == [str(config.output) for config in parsing.plan()]
    parsing.main()
    assert f"parsing.json: {len(asked)} runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (run, ["run", "name", "aiayn train"]),
        (live, ["run", "--trained-by", "aiayn train"]),
    ],
)
def test_what_a_run_was_made_with_is_asked_for_first(tool, words, monkeypatch, capsys):
    """Not guessed, and not looked up when the work is done."""
    monkeypatch.setattr(sys, "argv", ["", *words])
    with pytest.raises(SystemExit):
        tool.main()
    assert "required: --commit" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["", *words, "--commit", "nothing"])
    with pytest.raises(SystemExit, match="git finds no commit 'nothing' here"):
        tool.main()


@pytest.mark.parametrize(
    ("tool", "words"),
    [(make_slides, []), (book_pdf, ["--pages"]), (audit, ["--pages"])],
)
def test_a_page_that_there_is_not_is_named(tool, words, tmp_path, monkeypatch, capsys):
    """And nothing is made of the others."""
    (tmp_path / "index.html").touch()
    monkeypatch.setattr(audit, "SITE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["", *words, "nowhere"])
    with pytest.raises(SystemExit) as stopped:
        tool.main()
    assert stopped.value.code == 2
    assert "nowhere" in capsys.readouterr().err.splitlines()[-1]
