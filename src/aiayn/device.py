"""Which device and precision to compute with, and a description of the machine."""

import os
import platform
import re
from contextlib import suppress
from pathlib import Path

import torch

from aiayn.errors import InputError


def resolve_device(name: str = "auto") -> torch.device:
    """The device of that name; 'auto' is CUDA, else Apple's MPS, else the CPU.

    Raises:
        InputError: There is no such device, or this machine or this torch lacks it.
    """
    on_mac = torch.backends.mps.is_available()
    counts = {"cuda": torch.cuda.device_count(), "mps": int(on_mac), "cpu": 1}
    if name == "auto":
        name = next(kind for kind, count in counts.items() if count)
    with suppress(RuntimeError, KeyError):  # it has no such name, or is another kind
        device = torch.device(name)
        if (device.index or 0) < counts[device.type]:
            return device
    raise InputError(
        f"torch {torch.__version__} finds no device {name!r} on this machine: device "
        "is one of auto, cpu, cuda (or cuda:0, …) and mps."
    )


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
    units = getattr(torch.cpu, "get_capabilities", dict)()  # torch 2.11 may lack it
    # ATEN_CPU_CAPABILITY may have torch compute as on an older processor.
    older = torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2")
    has_units = units.get("avx512_bf16") or units.get("amx_tile")
    return device.type == "cpu" and not older and bool(has_units)


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


def _processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name, with family and model where the name tells no generation.

    `platform.processor` gives no name on Linux. A rented machine often says no more
    than whose it is, "AMD EPYC"; family and model tell the generation, on which speed
    depends.
    """
    text = cpuinfo.read_text(errors="replace") if cpuinfo.is_file() else ""
    pattern = r"^(model name|cpu family|model)\s*: (.+)$"
    facts = dict(re.findall(pattern, text.partition("\n\n")[0], re.MULTILINE))
    name = facts.get("model name") or platform.processor() or platform.machine()
    if re.search(r"\d{3}", name) or not {"cpu family", "model"} <= facts.keys():
        return name
    return f"{name} (family {facts['cpu family']}, model {facts['model']})"
