"""Show the built site, and rebuild it while somebody writes.

Whoever changes a page, a notebook or the site's own files sees the page again a moment
later: what has changed is built by ``make site``, and open pages load themselves anew.
A build that fails says why and leaves the pages as they were.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from project import BUILD, ROOT, SITE_SOURCES

SITE = BUILD / "html"
PAUSE = 0.5  # seconds between two looks
EVENTS = "/-/rebuilt"
SCRIPT = "/-/reload.js"  # a file: the pages' policy lets no other script into them
RELOAD = f'<script src="{SCRIPT}"></script>'
RELOADING = f"new EventSource('{EVENTS}').onmessage = () => location.reload();\n"
LINES_OF_A_FAILURE = 20


class Builds:
    """How often the site has been rebuilt, for those who wait for the next time."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def done(self) -> None:
        """There are new pages."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Whether there were new pages within so many seconds."""
        with self._changed:
            before = self._count
            return self._changed.wait_for(lambda: self._count > before, seconds)


class Handler(SimpleHTTPRequestHandler):
    """Files of the site; pages with a script more, which loads them anew."""

    def __init__(self, *args, builds: Builds, **options) -> None:
        self.builds = builds
        super().__init__(*args, **options)

    def do_GET(self) -> None:
        """Answer with the events, the script, a page, or another file."""
        if self.path == EVENTS:
            self._send_events()
            return
        if self.path == SCRIPT:
            self._send(RELOADING, "text/javascript")
            return
        path = Path(self.translate_path(self.path))
        page = path / "index.html" if path.is_dir() else path
        folder_without_slash = path.is_dir() and not self.path.endswith("/")
        if page.suffix == ".html" and page.is_file() and not folder_without_slash:
            text = page.read_text(encoding="utf-8")
            self._send(text.replace("</body>", RELOAD + "</body>"), "text/html")
        else:
            super().do_GET()

    def _send(self, text: str, kind: str) -> None:
        content = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _send_events(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            while True:  # a comment now and then shows whether anybody is still there
                news = b"data: rebuilt\n\n" if self.builds.wait(15) else b":\n\n"
                self.wfile.write(news)
                self.wfile.flush()
        except OSError:
            return

    def end_headers(self) -> None:
        """Nothing is kept by the browser: the next look must show the next build."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *args) -> None:
        """Requests are not worth a line each."""


def look(root: Path = ROOT) -> dict[Path, int]:
    """When each watched file was last written."""
    files = [root / name for name in SITE_SOURCES if (root / name).is_file()]
    for name in SITE_SOURCES:
        for folder, _, inside in os.walk(root / name):
            files += [Path(folder, file) for file in inside]
    found = {}
    for path in files:
        if "__pycache__" not in path.parts and not path.name.startswith("."):
            with suppress(OSError):  # it has gone since it was listed
                found[path] = path.stat().st_mtime_ns
    return found


def changes(root: Path = ROOT, pause: float = PAUSE) -> Iterator[list[Path]]:
    """The files that were written, made or removed, each time that some were."""
    before = look(root)
    while True:
        time.sleep(pause)
        now = look(root)
        if now == before:
            continue
        while (later := _after(root, pause)) != now:  # an editor may write several
            now = later
        yield sorted(path for path, _ in before.items() ^ now.items())
        before = now


def _after(root: Path, pause: float) -> dict[Path, int]:
    time.sleep(pause)
    return look(root)


def build(root: Path = ROOT) -> str:
    """Build what has changed; the last lines of what went wrong, or nothing."""
    command = ["make", "--no-print-directory", "site"]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True)
    lines = run.stderr.splitlines()[-LINES_OF_A_FAILURE:]
    return "\n".join(lines or ["make site failed."]) if run.returncode else ""


def rebuild(builds: Builds, root: Path, make: Callable[[Path], str] = build) -> None:
    """Rebuild whenever something changes, for ever."""
    for paths in changes(root):
        names = ", ".join(sorted({path.relative_to(root).as_posix() for path in paths}))
        print(f"{names}: building …", flush=True)
        began = time.monotonic()
        if trouble := make(root):
            print(f"{trouble}\nThe pages are as they were.", flush=True)
            continue
        builds.done()
        print(f"Built in {time.monotonic() - began:.0f} s.", flush=True)


def server(port: int, builds: Builds, site: Path = SITE) -> ThreadingHTTPServer:
    """The server, for this machine alone; port 0: any that is free."""
    handler = partial(Handler, builds=builds, directory=str(site))
    made = ThreadingHTTPServer(("127.0.0.1", port), handler)
    made.daemon_threads = True
    return made


def main() -> int:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8000)
    port = parser.parse_args().port
    if not (SITE / "index.html").is_file():
        print("There is no site yet: run 'make book' first.")
        return 1
    builds = Builds()
    try:
        made = server(port, builds)
    except OSError as error:
        print(f"Port {port}: {error.strerror}. Try 'make serve PORT={port + 1}'.")
        return 1
    threading.Thread(target=rebuild, args=(builds, ROOT), daemon=True).start()
    print(f"The book is at http://127.0.0.1:{port} until you press Ctrl-C.")
    print("Change a page or a notebook, and it is built and shown again.", flush=True)
    with made:
        try:
            made.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
