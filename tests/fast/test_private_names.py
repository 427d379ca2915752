"""What is private in torch may go, or change: the fast classes then compute as before.

Each test takes one of those names away, as a release of torch may.
"""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch._dynamo import config as numbers
from torch.autograd import forward_ad
from torch.fx.experimental import _config as sizes
from torch.nn import functional as F
from torch.testing import assert_close

import aiayn.fast.linear as products
from aiayn import fast
from aiayn.fast.compilation import distinct_sizes, gpu_options
from aiayn.fast.conditions import is_transformed

ASKED_FOR = {
    (torch._C, "_len_torch_dispatch_stack"),
    (torch._C, "_are_functorch_transforms_active"),
    (forward_ad, "_current_level"),
}
CHANGED = {sizes: "use_duck_shape", numbers: "specialize_float"}
REAL = torch.ops.mkldnn
MULTIPLIERS = {
    "is gone": {"_linear_pointwise": None},
    "takes fewer arguments": {"_linear_pointwise": lambda x, weight: F.linear},
    "computes something else": {"_linear_pointwise": lambda *_: 7.0},
    "does not pack weights": {"_reorder_linear_weight": None},
    "packs with more arguments": {
        "_reorder_linear_weight": lambda weight, rows: weight
    },
}


def test_there_is_no_other_private_name():
    """Whoever adds one adds it here, and a test below that takes it away."""
    private = r"torch(?:\.\w+)*\.(_[a-z]\w+)|(?:_C|forward_ad), \"(_\w+)|import (_\w+)"
    found = set()
    for path in Path(fast.__file__).parent.glob("*.py"):
        for names in re.findall(private, path.read_text(encoding="utf-8")):
            found |= {*names}
    parts = {"_dynamo", "_inductor", "_config", ""}
    parts |= {"_linear_pointwise", "_reorder_linear_weight"}
    assert found == {name for _, name in ASKED_FOR} | parts


@pytest.mark.parametrize(("holder", "name"), sorted(ASKED_FOR, key=str))
def test_a_question_that_cannot_be_asked_is_answered_with_no(holder, name, monkeypatch):
    monkeypatch.delattr(holder, name)
    assert not is_transformed()


@pytest.mark.parametrize("change", MULTIPLIERS)
def test_a_product_that_is_not_what_it_was_is_left_alone(change, monkeypatch):
    """Wherever it would be taken: an AMD processor, and factors of any size."""
    monkeypatch.setattr(products, "MIN_SIZE", 0)
    amd = {"processor": "AMD EPYC"}
    monkeypatch.setattr(products, "describe_machine", lambda: amd)
    monkeypatch.setattr(products, "_mkl_is_slow", products._mkl_is_slow.__wrapped__)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    names = ("_linear_pointwise", "_reorder_linear_weight")
    found = {name: getattr(REAL, name, None) for name in names} | MULTIPLIERS[change]
    there = {name: operation for name, operation in found.items() if operation}
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace(**there))
    assert not products._mkl_is_slow(searching=False)
    x, weight = torch.randn(2, 4), torch.randn(3, 4, requires_grad=True)
    assert_close(products.linear(x, weight), F.linear(x, weight))


def test_a_gpus_compiler_is_told_nothing_where_its_options_are_not_listed(monkeypatch):
    import torch._inductor

    monkeypatch.setattr(torch._inductor, "list_options", lambda some: some)
    assert gpu_options(True) == {}
    monkeypatch.delattr(torch._inductor, "list_options")
    assert gpu_options(True) == {}


@pytest.mark.parametrize("config", CHANGED)
def test_a_setting_that_is_not_there_stays_as_it_is(config, monkeypatch):
    """Be it the setting or its whole module. The other of the two is still made."""
    parent, _, name = config.__name__.rpartition(".")
    (other,) = CHANGED.keys() - {config}
    before = getattr(other, CHANGED[other])
    monkeypatch.setattr(sys.modules[parent], name, SimpleNamespace())
    with distinct_sizes():
        assert getattr(other, CHANGED[other]) != before
    monkeypatch.delattr(sys.modules[parent], name)
    monkeypatch.setitem(sys.modules, config.__name__, None)
    with distinct_sizes():
        assert getattr(other, CHANGED[other]) != before


@pytest.mark.parametrize(
    ("processor", "expected"),
    [
        ("AMD EPYC (family 26, model 2)", True),
        ("AMD64 Family 25 Model 33 Stepping 0, AuthenticAMD", True),  # Windows
        ("Intel64 Family 6 Model 85 Stepping 7, GenuineIntel", False),
        ("Intel(R) Xeon(R) Platinum 8480+", False),
        ("AMD64", False),  # what Windows calls any machine of 64 bits
        ("arm", False),
    ],
)
def test_an_amd_processor_is_known_by_its_description(processor, expected, monkeypatch):
    monkeypatch.setattr(products, "describe_machine", lambda: {"processor": processor})
    monkeypatch.setattr(products, "_onednn_multiplies", lambda: True)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    for searching in (True, False):
        assert products._mkl_is_slow.__wrapped__(searching) is expected


def test_on_an_amd_processor_of_narrow_vectors_only_a_search_leaves_mkl(monkeypatch):
    """On Zen 3 oneDNN is the faster one only where weights are packed."""
    amd = {"processor": "AMD EPYC (family 25, model 1)"}
    monkeypatch.setattr(products, "describe_machine", lambda: amd)
    monkeypatch.setattr(products, "_onednn_multiplies", lambda: True)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    assert products._mkl_is_slow.__wrapped__(searching=True)
    assert not products._mkl_is_slow.__wrapped__(searching=False)
