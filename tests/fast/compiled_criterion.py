"""Run by test_compile.py in a process of its own: what a compiler makes of training.

Prints JSON: for padded and for packed rows, for packed ones of a model with rotary
positions, and for padded ones of a training in several processes, by how much loss and
gradients of each batch differ from those without a compiler; how many graphs there
were; and how often they call torch's fused attention.
"""

import copy
import json
from dataclasses import replace

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from aiayn.fast import accelerate
from aiayn.fast.compilation import compile_dynamic
from aiayn.model import Transformer, TransformerConfig
from aiayn.training.loss import Criterion

CONFIG = TransformerConfig.tiny(
    vocab_size=31,
    d_model=8,
    d_ff=12,
    num_heads=2,
    num_encoder_layers=1,
    num_decoder_layers=1,
    dropout=0.0,
)


def batches():
    """Batches of ever other shapes: padding on both sides, ends (2) here and there.

    In the first, sources are as long as targets; no later one may need its own graph.
    """
    for rows, source_length, target_length in ((2, 9, 9), (3, 7, 5), (4, 5, 8)):
        source = torch.randint(4, 31, (rows, source_length))
        target = torch.randint(4, 31, (rows, target_length))
        source[:, 2] = target[:, 1] = source[:, -1] = target[:, -1] = 2
        source[0, -2:] = target[-1, -3:] = 0
        yield source, target


def compiled(plain):
    """The criterion compiled, its parameters, and a list that will hold its graphs.

    They are run as they are: to make kernels of them is torch's affair, and takes a C++
    compiler and minutes.
    """
    graphs = []

    def keep(graph, _):
        graphs.append(graph)
        return graph.forward

    made = copy.deepcopy(plain)
    return compile_dynamic(made, backend=keep), [*made.parameters()], graphs


def compiled_in_parts(plain):
    """The same for a training in several processes, of which this is the only one.

    There the compiler cuts the graph, at every 25 MB of gradients: here at a few kB. It
    needs each part's gradient as a graph of its own.
    """
    graphs, trace = [], torch._dynamo.lookup_backend("aot_eager")

    def keep(graph, inputs):
        graphs.append(graph)
        return trace(graph, inputs)

    distributed._DEFAULT_FIRST_BUCKET_BYTES = 1024  # pyright: ignore
    distributed.init_process_group(
        "gloo", store=distributed.HashStore(), rank=0, world_size=1
    )
    made = DistributedDataParallel(copy.deepcopy(plain), bucket_cap_mb=0.002)
    return compile_dynamic(made, backend=keep), [*made.parameters()], graphs


def gradients(criterion, parameters, batch):
    """The loss, and the gradient of every weight."""
    smoothed, cross_entropy = criterion(*batch)
    found = torch.autograd.grad(smoothed, parameters)
    return [smoothed, cross_entropy, *found]


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = {}
    for kind, packed, positions, make in (
        ("padded", False, "sinusoidal", compiled),
        ("packed", True, "sinusoidal", compiled),
        ("rotary", True, "rotary", compiled),
        ("in parts", False, "sinusoidal", compiled_in_parts),
    ):
        model = Transformer(replace(CONFIG, positions=positions)).double()
        plain = Criterion(model, 0.1, bos_id=1, packed=packed)
        made, parameters, graphs = make(accelerate(copy.deepcopy(plain)))
        differences = []
        for batch in batches():
            expected = gradients(plain, [*plain.parameters()], batch)
            found_now = gradients(made, parameters, batch)
            pairs = zip(expected, found_now, strict=True)
            differences.append(max(float((a - b).abs().max()) for a, b in pairs))
        calls = [str(node.target) for graph in graphs for node in graph.graph.nodes]
        found[kind] = {
            "differences": differences,
            "graphs": len(graphs),
            "fused": sum("scaled_dot_product" in call for call in calls),
        }
    distributed.destroy_process_group()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
