"""The exported graphs, run by onnxruntime: encoder and decoder, step by step."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from aiayn import InputError, Tokenizer, Transformer, TransformerConfig
from aiayn.interop import onnx as interop_onnx
from aiayn.model.description import describe_config
from aiayn.run import RunFolder

MISSING = [n for n in ("onnx", "onnxscript", "onnxruntime") if find_spec(n) is None]


@pytest.fixture(scope="module", params=["sinusoidal", "rotary"])
def exported(request, tmp_path_factory):
    """A model, and its graphs as the command writes them."""
    if MISSING:
        pytest.skip(f"{' and '.join(MISSING)} not installed: pip install 'aiayn[onnx]'")
    torch.manual_seed(0)
    tokenizer = Tokenizer.train(["a dog runs", "the cat sees a dog"], 30)
    config = TransformerConfig.tiny(
        vocab_size=30, d_model=16, d_ff=24, max_length=40, positions=request.param
    )
    model = Transformer(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    run = RunFolder(tmp_path_factory.mktemp("run"))
    run.config.write_text("{}")  # makes it a run's folder
    tokenizer.save(run.tokenizer)
    info = {"step": 1, "model": describe_config(config)}
    run.save_checkpoint(model.state_dict(), info, keep=1)
    # In a process of its own: here every call checks shapes, which cannot be traced.
    command = [sys.executable, "-m", "aiayn", "export", str(run.path), "--to", "onnx"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return model, run.path / "onnx", done


def session(path):
    import onnxruntime

    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def call(graph, **inputs):
    names = [output.name for output in graph.get_outputs()]
    return dict(zip(names, graph.run(None, inputs), strict=True))


def step_by_step(folder, config, source, target):
    """Logits of every position, as whoever has the two files would compute them."""
    encoder, step = (session(folder / n) for n in ("encoder.onnx", "decoder_step.onnx"))
    memory = call(encoder, source=source.numpy())
    width = config.d_model // config.num_heads
    nothing = np.zeros((len(source), config.num_heads, 0, width), np.float32)
    layers = range(config.num_decoder_layers)
    state = {f"{kind}.{i}": nothing for i in layers for kind in ("keys", "values")}
    logits = []
    for tokens in target.T.numpy():
        new = call(step, tokens=tokens, **memory, **state)
        logits.append(new.pop("logits"))
        state = {name.removeprefix("new_"): value for name, value in new.items()}
    return torch.from_numpy(np.stack(logits, axis=1))


@pytest.mark.parametrize(
    ("sentences", "read", "written"), [(1, 1, 1), (1, 7, 3), (3, 4, 9), (5, 11, 2)]
)
@torch.no_grad()
def test_the_graphs_compute_what_the_model_computes(exported, sentences, read, written):
    """For any number of sentences, any lengths, with padding."""
    model, folder, _ = exported
    source = torch.randint(4, 30, (sentences, read))
    source[-1, (read + 1) // 2 :] = model.config.pad_id
    target = torch.randint(4, 30, (sentences, written))
    # 32-bit sums in another order; torch's tolerance for that type.
    assert_close(
        step_by_step(folder, model.config, source, target), model(source, target)
    )


def test_the_command_says_what_it_wrote_and_nothing_else(exported):
    """Weights stand in the graphs: two files and the tokenizer are all."""
    _, folder, done = exported
    names = ["decoder_step.onnx", "encoder.onnx", "tokenizer.model"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert done.stdout == f"{folder}: {', '.join(names)}\n"
    assert done.stderr == ""


@pytest.mark.parametrize("changes", [{"num_decoder_layers": 0}, {"max_length": 5}])
def test_what_cannot_be_exported_is_refused_at_once(changes, monkeypatch, tmp_path):
    monkeypatch.setattr(interop_onnx, "find_spec", lambda name: True)
    model = Transformer(TransformerConfig.tiny(vocab_size=20, **changes))
    with pytest.raises(InputError, match="needs a decoder layer, and a max_length"):
        interop_onnx.export_onnx(model, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_without_onnx_a_sentence_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(interop_onnx, "find_spec", lambda name: None)
    model = Transformer(TransformerConfig.tiny(vocab_size=20))
    with pytest.raises(InputError, match=r"pip install 'aiayn\[onnx\]'"):
        interop_onnx.export_onnx(model, tmp_path)


def test_every_part_is_in_its_mode_again(monkeypatch, tmp_path):
    """Also where the encoder is frozen, in evaluation, while the rest is trained."""
    model = Transformer(TransformerConfig.tiny(vocab_size=20))
    model.encoder.eval()
    before = [module.training for module in model.modules()]

    def write(graph, *_):
        assert not any(module.training for module in model.modules())
        return tmp_path

    monkeypatch.setattr(interop_onnx, "find_spec", lambda name: True)
    monkeypatch.setattr(interop_onnx, "_write", write)
    interop_onnx.export_onnx(model, tmp_path)
    assert [module.training for module in model.modules()] == before
