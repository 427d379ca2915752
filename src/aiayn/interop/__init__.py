"""The same model in other libraries: torch.nn, Hugging Face Marian, ONNX.

A checkpoint of ours needs nothing of this: it is a safetensors file whose names are
those of the model's ``state_dict``.

Not in the paper.
"""

from aiayn.interop.marian import to_marian
from aiayn.interop.onnx import export_onnx
from aiayn.interop.torch_nn import copy_from_torch, to_torch

__all__ = ["copy_from_torch", "export_onnx", "to_marian", "to_torch"]
