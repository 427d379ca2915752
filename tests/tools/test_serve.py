"""Writing with the site beside: what changes is built, and open pages hear of it."""

import re
import socket
import sys
import threading
import urllib.request
from queue import Queue

import pytest

import serve

PAGE = "<html><body><p>One.</p></body></html>"


@pytest.fixture
def root(tmp_path):
    """A project with one page and its site."""
    (tmp_path / "book").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_config.yml").write_text("title: T\n")
    (tmp_path / "book" / "page.md").write_text("One.\n")
    site = tmp_path / "_build" / "html"
    site.mkdir(parents=True)
    (site / "index.html").write_text(PAGE)
    (site / "page.txt").write_text("</body>")
    return tmp_path


@pytest.fixture
def address(root):
    """The site, served; yields its address and its builds."""
    builds = serve.Builds()
    with serve.server(0, builds, root / "_build" / "html") as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", builds
        server.shutdown()


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode(), answer.headers


@pytest.mark.parametrize("path", ["/", "/index.html"])
def test_a_page_loads_itself_anew_and_is_not_kept(address, path):
    text, headers = fetch(address[0] + path)
    assert text == PAGE.replace("</body>", serve.RELOAD + "</body>")
    assert headers["Cache-Control"] == "no-store"


def test_what_loads_a_page_anew_is_a_file(address):
    """The pages' policy lets no other script into them."""
    source = re.search(r'<script src="([^"]+)"></script>', serve.RELOAD)[1]
    text, headers = fetch(address[0] + source)
    assert headers["Content-Type"].startswith("text/javascript")
    assert serve.EVENTS in text


def test_other_files_are_served_as_they_are(address):
    assert fetch(address[0] + "/page.txt")[0] == "</body>"


def test_an_open_page_hears_of_a_build(address):
    url, builds = address
    with urllib.request.urlopen(url + serve.EVENTS, timeout=10) as events:
        threading.Timer(0.5, builds.done).start()
        assert events.readline() == b"data: rebuilt\n"


@pytest.mark.parametrize(
    ("trouble", "told"), [("", True), ("page.md:1: no such heading", False)]
)
def test_a_change_is_built_and_told_if_that_went_well(root, trouble, told, capsys):
    """A build that fails says why; the pages stay, and nobody loads them anew."""
    builds, built = serve.Builds(), Queue()

    def make(where):
        built.put(where)
        return trouble

    heard = Queue()
    threading.Thread(target=lambda: heard.put(builds.wait(4)), daemon=True).start()
    watch = threading.Thread(
        target=serve.rebuild, args=(builds, root, make), daemon=True
    )
    watch.start()
    threading.Timer(0.3, (root / "book" / "page.md").write_text, ["Two.\n"]).start()
    assert built.get(timeout=10) == root
    assert heard.get(timeout=10) is told
    printed = capsys.readouterr().out
    assert "book/page.md: building" in printed
    assert trouble in printed


def test_new_and_removed_files_count_but_no_byproducts(root):
    """What Python and editors leave beside a file is no change."""
    before = serve.look(root)
    (root / "book" / "__pycache__").mkdir()
    (root / "book" / "__pycache__" / "a.pyc").touch()
    (root / "book" / ".page.md.swp").touch()
    assert serve.look(root) == before
    (root / "notebooks" / "new.ipynb").touch()
    assert len(serve.look(root)) == len(before) + 1
    (root / "book" / "page.md").unlink()
    assert root / "book" / "page.md" not in serve.look(root)


def test_a_file_that_has_gone_since_it_was_listed_is_passed_over(root):
    """An editor's own comes and goes; a link to nothing is listed, and not there."""
    before = serve.look(root)
    (root / "book" / "gone.md").symlink_to("nothing")
    assert serve.look(root) == before


def test_a_port_that_is_taken_gets_a_sentence(root, monkeypatch, capsys):
    """And the book is nowhere said to be."""
    monkeypatch.setattr(serve, "SITE", root / "_build" / "html")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setattr(sys, "argv", ["", "--port", str(port)])
        assert serve.main() == 1
    printed = capsys.readouterr().out
    assert f"Port {port}: Address already in use" in printed
    assert f"make serve PORT={port + 1}" in printed
    assert "The book is at" not in printed
