"""Note how long each notebook took, for its set-up cell to announce.

The times come from the cache that ``make test`` fills. They are stored with the
package, because a reader in Colab has no cache. A time that has changed by less than a
quarter keeps its figure, so that an ordinary rerun leaves the file alone.
"""

import json

import nbformat
from jupyter_cache import get_cache

from aiayn.device import describe_machine
from tools.project import CACHE, ROOT, notebook_paths

STORE = ROOT / "src" / "aiayn_book" / "run_times.json"


def measured() -> dict[str, float]:
    """The run times in the cache, in seconds, by the notebooks' names.

    Raises:
        SystemExit: A chapter has not run.
    """
    cache = get_cache(CACHE)
    times = {}
    for path in notebook_paths():
        try:
            record = cache.match_cache_notebook(nbformat.read(path, as_version=4))
        except KeyError:
            raise SystemExit(
                f"{path.name} has not run yet: 'make book' runs it."
            ) from None
        times[path.stem] = record.data["execution_seconds"]
    return times


def merged(old: dict[str, float], new: dict[str, float]) -> dict[str, float]:
    """The new times, but an old one where the two hardly differ."""
    return {
        name: old[name]
        if name in old and abs(seconds - old[name]) < old[name] / 4
        else round(seconds, 1)
        for name, seconds in sorted(new.items())
    }


def main() -> None:
    """Bring the file up to date."""
    old = json.loads(STORE.read_text(encoding="utf-8"))
    machine = describe_machine()
    place = f"one thread of {machine['processor']}"
    seconds = merged(old["seconds"], measured())
    if seconds != old["seconds"]:
        table = {"machine": place, "seconds": seconds}
        STORE.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n")
        print(f"Written: {STORE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
