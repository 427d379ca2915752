"""The famous mistakes of this model: the ordinary tests catch each of them.

A mutant is a copy of the package with one expression changed, the same that the book's
bug clinic hands out. The very test that the suite runs is run against the copy, in a
process of its own, and has to fail.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import aiayn
from aiayn.errors import InputError
from aiayn.fast.gpu_attention import gpu_attention
from aiayn_book.clinic import BUGS, Bug, admit, reveal

pytestmark = pytest.mark.costly

ROOT = Path(__file__).resolve().parents[1]

CAUGHT_BY = {
    "no-scale": "model/test_attention::test_dot_product_attention_by_hand",
    "wrong-axis": "model/test_attention::test_dot_product_attention_is_torchs",
    "mask-only-in-training": "model/test_transformer::test_the_whole_model_is_torchs",
    "labels-not-shifted": "model/test_transformer::test_no_logit_depends_on_its_label",
    "position-always-zero": "model/test_cache::test_step_by_step_is_all_at_once",
    "padding-as-start": (
        "inference/test_search::test_greedy_search_takes_the_most_probable_token"
    ),
    "layer-norm": "model/test_layers::test_encoder_layer_is_torchs",
    "schedule-per-batch": (
        "training/test_train::test_accumulated_batches_are_one_large_batch"
    ),
    "deep-copies": "model/test_layers::test_layers_start_different",
    "minus-a-billion": "model/test_transformer::test_half_precision_stays_finite",
    "wrong-root": "model/test_attention::test_multi_head_attention_is_torchs",
    "dropout-in-evaluation": (
        "model/test_layers::test_dropout_falls_on_the_update_and_never_on_the_residual"
    ),
    "padding-counts": (
        "training/test_loss::test_padding_changes_neither_loss_nor_gradient"
    ),
}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.id)
def test_an_ordinary_test_fails_for_the_mutant(bug, tmp_path):
    """One test, named above, fails: it does not merely break off."""
    package = tmp_path / "aiayn"
    shutil.copytree(Path(aiayn.__file__).parent, package)
    module = package / f"{bug.module.replace('.', '/')}.py"
    module.write_text(bug.infect(module.read_text("utf-8")), "utf-8")
    file, _, test = CAUGHT_BY[bug.id].partition("::")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("--confcutdir", "tests", "--hypothesis-profile", "mutant"),
            f"tests/{file}.py::{test}",
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout + run.stderr


def test_a_patient_is_the_package_with_one_mistake():
    """It is imported under its own name, all of it, and only that piece differs."""
    patient = admit(1)
    assert patient.Transformer.__module__ == "patient_1.model.transformer"
    assert patient is admit(1)
    assert patient.Transformer is not aiayn.Transformer
    assert reveal(5).splitlines() == [
        "aiayn/model/transformer.py",
        '-        x = self._embed("target", tokens[:, None], start=cache.length)',
        '+        x = self._embed("target", tokens[:, None], start=0)',
    ]


def test_a_patient_leaves_the_package_its_operations():
    """Torch knows one by its name, and forgets what another of that name did."""
    admit(1)
    query = torch.ones(1, 1, 2, 16, requires_grad=True)
    context = gpu_attention(query, query, query)
    with pytest.raises(InputError, match="first derivatives only"):
        torch.autograd.grad(context.sum(), query, create_graph=True)


@pytest.mark.parametrize("number", [0, len(BUGS) + 1])
def test_only_those_patients_are_there(number):
    with pytest.raises(InputError, match=f"1 to {len(BUGS)}"):
        admit(number)


def test_a_bug_must_fit_the_source():
    """A change of the package may not turn a patient healthy unnoticed."""
    with pytest.raises(InputError, match="occurs 0 times"):
        Bug("gone", "model.attention", {"a b": "b a"}).infect("a + b")
