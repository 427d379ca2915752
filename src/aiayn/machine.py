"""What to compute on and in, and what machine this is, in words."""

import os
import platform
import re
from pathlib import Path

import torch

from aiayn.errors import InputError


def resolve_device(name: str = "auto") -> torch.device:
    """The device of that name; 'auto' is CUDA, else Apple's MPS, else the CPU.

    Raises:
        InputError: There is no such device, or not on this machine or in this torch.
    """
    usable = {"cpu": True, "cuda": torch.cuda.is_available()}
    usable["mps"] = torch.backends.mps.is_available()
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if usable[kind])
    kind = name.partition(":")[0]
    if kind not in usable:
        raise InputError(f"device is one of auto, cpu, cuda and mps, not {name!r}.")
    if not usable[kind]:
        raise InputError(
            f"device {name!r} was asked for, but torch {torch.__version__} finds none "
            "on this machine: leave the device out, or say cpu."
        )
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(
            f"device is one of auto, cpu, cuda and mps, or cuda:0 and so on, not "
            f"{name!r}."
        ) from None
    if kind == "cuda" and (device.index or 0) >= (number := torch.cuda.device_count()):
        raise InputError(
            f"device {name!r} was asked for, but this machine's GPUs end with "
            f"cuda:{number - 1}."
        )
    return device


def resolve_precision(name: str, device: torch.device) -> torch.dtype:
    """What to multiply in: 'auto' is bfloat16 where the device has units for it.

    Args:
        name: fp32, bf16 or auto.
        device: Where the products are computed.

    Returns:
        ``torch.float32`` or ``torch.bfloat16``.
    """
    if name == "auto":
        name = "bf16" if _multiplies_bf16(device) else "fp32"
    return {"fp32": torch.float32, "bf16": torch.bfloat16}[name]


def _multiplies_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    # torch has no public question for a CPU in all versions that we support.
    units = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    known = [getattr(torch.cpu, unit, lambda: False) for unit in units]
    # ATEN_CPU_CAPABILITY may ask torch to compute as an older processor would.
    older = torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2")
    return device.type == "cpu" and not older and any(has() for has in known)


def describe_machine(device: torch.device | str = "cpu") -> dict[str, str | int]:
    """Name what a measurement depends on.

    Args:
        device: The device that the measurement runs on.

    Returns:
        Processor, cores, threads, Python, torch and, on CUDA, the GPU's name.
    """
    machine: dict[str, str | int] = {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    if torch.device(device).type == "cuda":
        machine["gpu"] = torch.cuda.get_device_name(device)
    return machine


def _processor() -> str:
    """The processor's name; `platform.processor` gives none on Linux."""
    cpuinfo = Path("/proc/cpuinfo")
    name = _named(cpuinfo.read_text(errors="replace")) if cpuinfo.is_file() else ""
    return name or platform.processor() or platform.machine()


def _named(cpuinfo: str) -> str:
    """The first processor's name in that text, "" if it has none.

    A rented machine often says no more than whose it is, "AMD EPYC". Family and model
    tell the generation, on which speed depends, and then stand beside the name.
    """
    first = cpuinfo.partition("\n\n")[0]
    lines = (line.partition(":") for line in first.splitlines())
    facts = {key.strip(): value.strip() for key, _, value in lines}
    name = facts.get("model name", "")
    says_which = re.search(r"\d{3}", name)
    if not name or says_which or not {"cpu family", "model"} <= facts.keys():
        return name
    return f"{name} (family {facts['cpu family']}, model {facts['model']})"
