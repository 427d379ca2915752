"""Downloads, against a server on this machine that fails in every way we know of."""

import hashlib
import os
import stat
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from aiayn.data.download import RemoteFile, cache_folder, fetch
from aiayn.errors import InputError

CONTENT = bytes(range(256)) * 400
PATH = "corpus/file.gz"


class Mirror(BaseHTTPRequestHandler):
    """Answers by the name of what is asked for."""

    def do_GET(self):
        """Send the file, or do what a bad mirror does."""
        self.server.asked.append(self.path)
        name = self.path.strip("/")
        if name == "gone":
            return self.send_error(404)
        if name == "moved":
            self.send_response(302)
            self.send_header("Location", "/good")
            return self.end_headers()
        self.send_response(200)
        if name != "short":
            self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        getattr(self, name, self.good)()

    def good(self):
        """The whole file."""
        self.wfile.write(CONTENT)

    def truncated(self):
        """The first half; then the connection closes."""
        self.wfile.write(CONTENT[: len(CONTENT) // 2])

    def short(self):
        """The first half, which nothing announces as such."""
        self.wfile.write(CONTENT[: len(CONTENT) // 2])

    def wrong(self):
        """Another file of the same size."""
        self.wfile.write(CONTENT[::-1])

    def silent(self):
        """Nothing until the test is over."""
        self.server.over.wait(20)

    def log_message(self, *_):
        """Keep the tests' output clean."""


@pytest.fixture
def server():
    """A mirror on a free port of this machine; `asked` lists what it was asked for."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    server.asked, server.over = [], threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()
    thread.join()


def remote(server, *names, sha256=None):
    """The file, to be had from those pages of the server; "dead" is a closed port."""
    base = f"http://127.0.0.1:{server.server_port}"
    mirrors = [
        "http://127.0.0.1:9/file" if name == "dead" else f"{base}/{name}"
        for name in names
    ]
    sha256 = sha256 or hashlib.sha256(CONTENT).hexdigest()
    return RemoteFile(PATH, sha256, tuple(mirrors))


def files_in_cache():
    """What the cache holds, temporary files included."""
    return [path for path in cache_folder().rglob("*") if path.is_file()]


def test_a_file_is_fetched_once(server):
    file = remote(server, "good")
    path = fetch(file)
    assert path == cache_folder() / PATH
    assert path.read_bytes() == CONTENT
    assert fetch(file) == path
    assert server.asked == ["/good"]
    assert files_in_cache() == [path]


def test_the_cache_can_be_shared(server):
    mask = os.umask(0o022)
    try:
        path = fetch(remote(server, "good"))
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("dead", "refused"),
        ("gone", "Error 404"),
        ("truncated", "51,200 bytes are missing"),
        ("short", "sent another file: its sha256 is"),
        ("wrong", "sent another file: its sha256 is"),
        ("silent", "timed out"),
    ],
)
def test_the_next_mirror_is_tried_and_a_failure_is_explained(server, bad, reason):
    path = fetch(remote(server, bad, "good"), timeout=0.5)
    assert path.read_bytes() == CONTENT
    path.unlink()
    with pytest.raises(InputError) as caught:
        fetch(remote(server, bad), timeout=0.5)
    message = str(caught.value)
    assert reason in message
    for expected in (PATH, "127.0.0.1", "by hand", str(path), "AIAYN_DATA"):
        assert expected in message
    assert files_in_cache() == []


def test_a_file_of_which_only_an_md5_is_known_is_held_to_it(server):
    md5 = hashlib.md5(CONTENT).hexdigest()
    file = replace(remote(server, "wrong", "good"), digest=md5)
    assert fetch(file).read_bytes() == CONTENT
    assert server.asked == ["/wrong", "/good"]
    other = replace(file, path="other", mirrors=file.mirrors[:1])
    with pytest.raises(InputError, match="sent another file: its md5"):
        fetch(other)


def test_a_file_that_nobody_has_published_a_checksum_of_is_taken_with_a_warning(server):
    file = replace(remote(server, "wrong"), digest=None)
    with pytest.warns(UserWarning, match=r"file\.gz is unverified"):
        assert fetch(file).read_bytes() == CONTENT[::-1]


def test_every_mirror_that_failed_is_named(server):
    with pytest.raises(
        InputError, match=r"/gone failed .*404.*/wrong failed .*another"
    ):
        fetch(remote(server, "gone", "wrong"))


def test_a_redirection_is_followed(server):
    assert fetch(remote(server, "moved")).read_bytes() == CONTENT


def test_a_damaged_file_in_the_cache_is_replaced(server):
    path = cache_folder() / PATH
    path.parent.mkdir(parents=True)
    for damaged in (b"", CONTENT[:-1], CONTENT[::-1]):
        path.write_bytes(damaged)
        assert fetch(remote(server, "good")).read_bytes() == CONTENT
    assert len(server.asked) == 3


def test_a_cache_that_cannot_be_written_is_named(server, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("AIAYN_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"file\.gz cannot be written"):
        fetch(remote(server, "good"))


def test_a_bar_is_shown_on_standard_error(server, capfd):
    fetch(remote(server, "good"))
    out, err = capfd.readouterr()
    assert out == ""
    assert PATH in err
    assert "100%" in err


def test_the_data_folder_comes_first(server, monkeypatch, tmp_path):
    own = tmp_path / "data" / PATH
    own.parent.mkdir(parents=True)
    own.write_bytes(CONTENT)
    monkeypatch.setenv("AIAYN_DATA", str(tmp_path / "data"))
    assert fetch(remote(server, "good")) == own
    assert server.asked == []
    own.write_bytes(CONTENT[::-1])
    with pytest.raises(InputError, match=r"AIAYN_DATA names \(now: .*data\)"):
        fetch(remote(server, "gone"))
    assert fetch(remote(server, "good")) == cache_folder() / PATH


def test_the_data_folder_may_be_below_home(server, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("AIAYN_DATA", "~/data")
    own = tmp_path / "data" / PATH
    own.parent.mkdir(parents=True)
    own.write_bytes(CONTENT)
    assert fetch(remote(server, "good")) == own


def test_a_data_folder_that_is_none_is_named_where_nothing_else_helps(
    server, monkeypatch, tmp_path
):
    monkeypatch.setenv("AIAYN_DATA", str(tmp_path / "typo"))
    with pytest.raises(InputError, match=r"AIAYN_DATA names \(now: .*typo\)"):
        fetch(remote(server, "gone"))
    assert fetch(remote(server, "good")) == cache_folder() / PATH


def test_the_cache_is_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.delenv("AIAYN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "aiayn"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "aiayn"


def test_what_a_killed_download_has_left_is_removed(server):
    """But not what another one is writing."""
    file = remote(server, "good")
    folder = (cache_folder() / file.path).parent
    folder.mkdir(parents=True)
    left, grows = (folder / f".file.gz.{number}.part" for number in (1, 2))
    for part in (left, grows):
        part.touch()
    os.utime(left, (0, 0))
    fetch(file)
    assert grows.exists()
    assert not left.exists()
