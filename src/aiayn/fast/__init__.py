"""Every acceleration, one module each, behind one door: `accelerate`.

The model, its criterion and its trainer are plain PyTorch. Everything that makes them
faster is here, and it is put in from outside: `accelerate` changes the classes of a
model's parts, `disabled` changes them back for a while. `train` and `load_translator`
call `accelerate`; nothing else does, so a model that you make yourself is plain until
you accelerate it.

| module | what it makes faster | where |
|---|---|---|
| `linear` | 32-bit products, by oneDNN; a search packs weights once | AMD CPU |
| `dropout` | dropout, by 16-bit integers | CPU |
| `attention`, `short_attention` | attention over short sentences | CPU |
| `gpu_attention`, `attention_kernels` | the same, in Triton | GPU |
| `loss` | the loss, in chunks, without padding | all |
| `autocast` | fewer conversions between types | bfloat16 |
| `cuda_graphs` | steps of small models, recorded and replayed | GPU |
| `compilation` | one compiled graph for all shapes | GPU |
| `process` | memory and kernel caches, for the command line | CPU |

Each fast class is held equal to the plain class that it replaces by tests, and
`benchmarks/` measures what they gain. Not in the paper.
"""

from aiayn.fast.swap import accelerate, disabled

__all__ = ["accelerate", "disabled"]
