"""The device and the precision that a run gets, asked for or found out."""

from contextlib import suppress

import pytest
import torch

from aiayn.data import Batch
from aiayn.errors import InputError
from aiayn.inference import beam_search, greedy_search, hypothesis, perplexity
from aiayn.machine import (
    _named,
    attend_without_plans,
    describe_machine,
    resolve_device,
    resolve_precision,
)
from aiayn.model import Transformer, TransformerConfig
from aiayn.training import Trainer, TrainingConfig, trainer

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
    with pytest.raises(InputError, match=r"'cuda:2'.*end with cuda:1\."):
        resolve_device("cuda:2")


def test_a_device_that_is_not_there_is_said_in_a_sentence():
    with pytest.raises(InputError, match="one of auto, cpu, cuda and mps, not 'tpu'"):
        resolve_device("tpu")
    with pytest.raises(InputError, match="or cuda:0 and so on, not 'cpu:x'"):
        resolve_device("cpu:x")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="'cuda' was asked for, but torch"):
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
    answers = {"_is_avx512_bf16_supported": avx512, "_is_amx_tile_supported": amx}
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cpu, name, lambda answer=answer: answer)
    assert resolve_precision("auto", CPU) is expected


def test_a_torch_that_does_not_know_its_processor_multiplies_in_float32(monkeypatch):
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name, raising=False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    assert resolve_precision("auto", CPU) is torch.float32


def test_mps_keeps_float32(monkeypatch):
    """Whatever the processor beside it could do."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
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
        ("processor\t: 0\nBogoMIPS\t: 243.75\n\n", ""),
        ("", ""),
    ],
)
def test_a_processor_that_hides_its_generation_is_named_with_it(cpuinfo, name):
    assert _named(cpuinfo) == name


@pytest.fixture(params=[True, False])
def cudnn(request):
    """Whether cuDNN may attend; and then as it was."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(request.param)
    yield request.param
    torch.backends.cuda.enable_cudnn_sdp(before)


def test_a_gpu_makes_no_plan_for_each_shape_of_an_attention(cudnn):
    """Until the end of the block, an early one too."""
    with attend_without_plans(CPU):
        assert torch.backends.cuda.cudnn_sdp_enabled() == cudnn
    with suppress(InputError), attend_without_plans(torch.device("cuda")):
        assert not torch.backends.cuda.cudnn_sdp_enabled()
        raise InputError
    assert torch.backends.cuda.cudnn_sdp_enabled() == cudnn


def test_plans_come_back_when_the_last_block_ends(cudnn):
    """The setting is the process's: blocks of two threads end in any order."""
    gpu = torch.device("cuda")
    first, second = attend_without_plans(gpu), attend_without_plans(gpu)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    second.__exit__(None, None, None)
    assert torch.backends.cuda.cudnn_sdp_enabled() == cudnn


def train(model, batch):
    config = TrainingConfig(model=model.config, device="cpu")
    Trainer(config, model, bos_id=1).step(1, [batch])


USES = {
    "a step of a training": train,
    "perplexity": lambda model, batch: perplexity(model, [batch], bos_id=1),
    "greedy search": lambda model, batch: greedy_search(
        model, batch.source, bos_id=1, eos_id=2
    ),
    "beam search": lambda model, batch: beam_search(
        model, batch.source, bos_id=1, eos_id=2
    ),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_whatever_has_batches_of_many_shapes_attends_without_plans(
    use, cudnn, monkeypatch
):
    """As if the model were on a GPU; afterwards all is as it was."""
    model, seen = Transformer(TransformerConfig.tiny(vocab_size=20)), set()

    def on_a_gpu(device):
        assert device == CPU
        return attend_without_plans(torch.device("cuda"))

    for module in (trainer, hypothesis):
        monkeypatch.setattr(module, "attend_without_plans", on_a_gpu)
    for part in model.modules():
        part.register_forward_hook(
            lambda *call: seen.add(torch.backends.cuda.cudnn_sdp_enabled())
        )
    batch = Batch(torch.tensor([[5, 6, 2]]), torch.tensor([[7, 8, 2]]))
    use(model, batch)
    assert seen == {False}
    assert torch.backends.cuda.cudnn_sdp_enabled() == cudnn
