"""The device and the precision that a run gets, asked for or found out."""

import pytest
import torch

from aiayn.device import (
    _processor,
    describe_machine,
    resolve_device,
    resolve_precision,
)
from aiayn.errors import InputError

CPU = torch.device("cpu")


def test_what_is_asked_for_is_what_one_gets():
    assert resolve_device("cpu") == CPU
    assert resolve_precision("fp32", CPU) is torch.float32
    assert resolve_precision("bf16", CPU) is torch.bfloat16


def test_a_gpu_that_is_not_there_is_said_in_a_sentence(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert resolve_device("cuda") == torch.device("cuda")
    assert resolve_device("cuda:1").index == 1
    with pytest.raises(InputError, match="finds no device 'cuda:2' on this machine"):
        resolve_device("cuda:2")


def test_a_device_that_is_not_there_is_said_in_a_sentence():
    with pytest.raises(InputError, match=r"no device 'tpu' .* one of auto, cpu, "):
        resolve_device("tpu")
    with pytest.raises(InputError, match="finds no device 'cpu:x'"):
        resolve_device("cpu:x")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="finds no device 'cuda'"):
            resolve_device("cuda")


@pytest.mark.parametrize(
    ("avx512", "amx", "capability", "expected"),
    [
        (False, False, "AVX512", torch.float32),
        (True, False, "AVX512", torch.bfloat16),
        (False, True, "AVX512", torch.bfloat16),
        (True, True, "AVX2", torch.float32),  # asked to compute as an older one
    ],
)
def test_a_processor_with_units_for_bfloat16_uses_them(
    monkeypatch, avx512, amx, capability, expected
):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    units = {"avx512_bf16": avx512, "amx_tile": amx}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: units, raising=False)
    assert resolve_precision("auto", CPU) is expected


def test_a_torch_that_does_not_know_its_processor_multiplies_in_float32(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    assert resolve_precision("auto", CPU) is torch.float32


def test_mps_keeps_float32(monkeypatch):
    """Whatever the processor beside it could do."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    units = {"avx512_bf16": True}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: units, raising=False)
    assert resolve_precision("auto", torch.device("mps")) is torch.float32


def test_the_machine_is_described_in_words_and_numbers():
    facts = describe_machine()
    assert facts["torch"] == torch.__version__
    assert facts["processor"]
    assert facts["threads"] >= 1
    assert "gpu" not in facts


CPUINFO = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: {name}

processor\t: 1
cpu family\t: 26
"""


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        (CPUINFO.format(name="AMD EPYC"), "AMD EPYC (family 25, model 17)"),
        (
            CPUINFO.format(name="Intel(R) Xeon(R) CPU @ 2.20GHz"),
            "Intel(R) Xeon(R) CPU @ 2.20GHz (family 25, model 17)",
        ),
        (CPUINFO.format(name="AMD EPYC 9654"), "AMD EPYC 9654"),
        ("model name\t: AMD EPYC\n", "AMD EPYC"),
    ],
)
def test_a_processor_that_hides_its_generation_is_named_with_it(
    cpuinfo, name, tmp_path
):
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    assert _processor(tmp_path / "cpuinfo") == name
