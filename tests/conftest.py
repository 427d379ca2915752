"""What every test of the package stands on: checked shapes, one thread, fixed seeds."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from hypothesis import Phase, register_random, settings
from jaxtyping import config, install_import_hook

# Before anything imports aiayn: from here on beartype holds every call against the
# shapes that its signature promises. Readers and users never pay for that; nor do tests
# of what knows no shapes, for a call that is checked takes tens of microseconds more.
PACKAGES = [Path(find_spec(name).origin).parent for name in ("aiayn", "aiayn_book")]
SHAPED = [
    ".".join(path.relative_to(package.parent).with_suffix("").parts)
    for package in PACKAGES
    for path in package.rglob("*.py")
    if "jaxtyping" in path.read_text(encoding="utf-8")
]
install_import_hook(SHAPED, "beartype.beartype")

# Two threads would be slower on a busy machine, and may add in another order.
torch.set_num_threads(1)


class TorchRandom:
    """torch's random numbers as hypothesis wants them: the same for each example."""

    seed = staticmethod(torch.manual_seed)
    getstate = staticmethod(torch.get_rng_state)
    setstate = staticmethod(torch.set_rng_state)


_torch_random = TorchRandom()  # hypothesis itself holds no more than a weak reference
register_random(_torch_random)
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=25)
# For mutants, which only have to fail: no search for the smallest example.
settings.register_profile(
    "mutant", settings.get_profile("fixed"), phases=[Phase.generate]
)
settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def _seed():
    """The same random numbers in every test, whichever tests run with it."""
    torch.manual_seed(0)


@pytest.fixture
def unchecked_shapes():
    """Calls as a user makes them: without beartype, which would complain first."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
