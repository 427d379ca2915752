"""A checkpoint is a safetensors file that anybody can open: no code of ours needed."""

from safetensors.torch import load_file
from torch.testing import assert_close

from aiayn import Transformer
from aiayn.model.description import describe_config
from aiayn.run import RunFolder


def test_a_checkpoint_is_the_models_state_dict(make, batch, tmp_path):
    """Loaded by safetensors alone, strictly, it gives the same model."""
    model = make()
    info = {"step": 1, "model": describe_config(model.config)}
    run = RunFolder(tmp_path)
    run.config.write_text("{}")  # without it, it would be no run's folder
    path = run.save_checkpoint(model.state_dict(), info, keep=1)
    again = Transformer(model.config).eval()
    again.load_state_dict(load_file(path))
    assert_close(again(*batch), model(*batch), rtol=0, atol=0)
