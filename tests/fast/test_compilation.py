"""A compiler sees the whole objective as one graph, whatever the batch's shape.

In a process without beartype: at each of its checks the compiler would stop.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch._dynamo.utils import compilation_time_metrics
from torch._inductor import list_options
from torch.nn import functional as F

from aiayn.fast.compilation import compile_dynamic, gpu_options
from aiayn.fast.conditions import is_transformed

pytestmark = pytest.mark.costly


@pytest.fixture(scope="module")
def all_kinds():
    """What the compiler made of it, for each kind of rows and of training."""
    script = Path(__file__).with_name("compiled_criterion.py")
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("kind", ["padded", "packed", "rotary"])
def test_it_is_one_graph_for_batches_of_all_shapes(all_kinds, kind):
    assert all_kinds[kind]["graphs"] == 1


def test_several_processes_have_it_in_parts(all_kinds):
    """Each part's gradients are exchanged while the next is computed."""
    assert all_kinds["in parts"]["graphs"] > 1


@pytest.mark.parametrize("kind", ["padded", "packed", "rotary", "in parts"])
def test_it_computes_the_same_loss_and_gradients(all_kinds, kind):
    # float64 sums in another order; losses are about a hundred.
    assert max(all_kinds[kind]["differences"]) < 1e-10
    assert len(all_kinds[kind]["differences"]) == 3


@pytest.mark.parametrize("kind", ["padded", "packed", "rotary", "in parts"])
def test_no_fused_attention_asks_whether_a_length_divides_by_8(all_kinds, kind):
    """For a GPU the compiler would make one graph where it does, and one where not."""
    assert all_kinds[kind]["fused"] == 0


def test_under_a_compiler_the_fast_classes_step_aside():
    seen = []

    @torch.compile(backend=lambda graph, _: graph.forward)
    def step(x):
        seen.append(is_transformed())
        return x + 1

    step(torch.ones(2))
    assert seen == [True]
    assert not is_transformed()


def test_a_rate_does_not_make_the_compiler_begin_anew():
    """It would trace all twice: once with the rate as a number that varies."""

    class Drops(nn.Module):
        rate = 0.25

        def forward(self, x):
            return F.dropout(x, self.rate, training=True)

    compiled = compile_dynamic(Drops(), backend="aot_eager")
    compilation_time_metrics.clear()
    compiled(torch.ones(5, 7))
    attempts = [name for name in compilation_time_metrics if "compile_attempt" in name]
    assert attempts == ["compile_attempt_0"]


def test_a_gpus_compiler_is_told_what_this_torch_knows():
    over_places, over_widths = gpu_options(True), gpu_options(False)
    assert over_places.keys() == over_widths.keys() <= set(list_options())
    assert over_places["triton.persistent_reductions"] is False
    assert over_widths["triton.persistent_reductions"] is True


def test_torchs_settings_are_as_they_were_after_each_call():
    from torch._dynamo import config as numbers
    from torch.fx.experimental import _config as sizes

    inside = []

    class Looks(nn.Module):
        def forward(self, x):
            inside.append((sizes.use_duck_shape, numbers.specialize_float))
            return x

    before = sizes.use_duck_shape, numbers.specialize_float
    compile_dynamic(Looks(), backend="eager")(torch.ones(2))
    assert inside[0] == (False, True)
    assert (sizes.use_duck_shape, numbers.specialize_float) == before


def losses(folder, *words):
    """Of three steps on the grammar, whose recipe drops nothing."""
    command = [sys.executable, "-m", "aiayn", "train", "grammar", *words]
    command += ["--steps", "3", "--log-every", "1", "--corpus-size", "500"]
    command += ["--precision", "fp32", "--model.vocab-size", "400"]
    subprocess.run([*command, "--output", str(folder)], check=True)
    log = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [line["loss"] for line in map(json.loads, log) if line["event"] == "train"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")
def test_a_gpu_goes_through_the_losses_of_a_cpu_compiled_or_not(tmp_path):
    expected = losses(tmp_path / "cpu", "--device", "cpu")
    for name, words in (("eager", []), ("compiled", ["--compile"])):
        found = losses(tmp_path / name, "--device", "cuda", *words)
        # float32 sums in another order, and two updates in between.
        assert found == pytest.approx(expected, rel=1e-4)
