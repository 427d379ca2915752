"""Run by test_gpu_attention.py in a process of its own, on a GPU: attention, compiled.

Prints JSON: the attentions that each graph calls, and for each kind of mask and each
pair of lengths the relative errors of context and gradients against float64.
"""

import json

import torch
from torch._inductor.compile_fx import compile_fx

from aiayn.fast.compilation import distinct_sizes
from aiayn.fast.gpu_attention import gpu_attention, register_operations
from aiayn.model import scaled_dot_product_attention

LENGTHS = [
    *((9, 7), (16, 16), (17, 3), (20, 27), (32, 32)),
    *((33, 20), (64, 64), (20, 70), (130, 65), (5, 300)),
]


def padding(rows, queries, keys):
    """Sources of unlike lengths."""
    lengths = torch.randint(1, keys + 1, (rows, 1), device="cuda")
    return (torch.arange(keys, device="cuda") < lengths)[:, None, None]


def some(rows, queries, keys):
    """Of each row its own; some queries see nothing."""
    return torch.rand(rows, 1, queries, keys, device="cuda") < 0.3


def nothing(rows, queries, keys):
    """Everything is seen."""
    return


def relative(found, expected):
    """How far off, in the norm."""
    return float((found.double() - expected).norm() / expected.norm())


def heads(rows, length, width):
    """As `MultiHeadAttention` splits them: heads lie within positions."""
    drawn = torch.randn(rows, length, 8, width, device="cuda", dtype=torch.bfloat16)
    return drawn.transpose(1, 2).requires_grad_()


def main():
    """Compile once for each kind of mask, and compare."""
    torch.manual_seed(1)
    register_operations()
    errors, graphs = {}, []

    def noting(graph, inputs):
        called = (str(node.target) for node in graph.graph.nodes)
        graphs.append([name for name in called if "attend" in name or "dot" in name])
        return compile_fx(graph, inputs)

    for mask in (padding, some, nothing):
        compiled = torch.compile(
            gpu_attention, backend=noting, dynamic=True, fullgraph=True
        )
        errors[mask.__name__] = []
        for rows, (queries, keys) in enumerate(LENGTHS, start=2):
            inputs = (
                heads(rows, queries, 64),
                heads(rows, keys, 64),
                heads(rows, keys, 32),
            )
            seen = mask(rows, queries, keys)
            with distinct_sizes():
                context = compiled(*inputs, seen)
            grad_output = torch.randn_like(context)
            exact = [x.detach().double().requires_grad_() for x in inputs]
            expected, _ = scaled_dot_product_attention(*exact, seen)
            found = [context, *torch.autograd.grad(context, inputs, grad_output)]
            wanted = [
                expected,
                *torch.autograd.grad(expected, exact, grad_output.double()),
            ]
            pairs = zip(found, wanted, strict=True)
            errors[mask.__name__] += [relative(*pair) for pair in pairs]
    print(json.dumps({"graphs": graphs, "errors": errors}))


if __name__ == "__main__":
    main()
