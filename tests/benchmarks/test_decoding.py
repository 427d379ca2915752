"""Peers' outputs are compared with ours, of the very weights that they had."""

import pytest

from aiayn.errors import InputError
from benchmarks import workload
from benchmarks.decoding import CompareWithOurs, digest_of_weights


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    """A folder of its own for our outputs."""
    monkeypatch.setattr(workload, "WORK", tmp_path)
    return tmp_path


def compared(weights, peer, outputs):
    key = {"peer": peer, "workload": "mixed", "beam_size": 1}
    return CompareWithOurs(weights)(key, {"seconds": 1.0, "outputs": outputs})


def test_the_share_that_is_ours_word_for_word():
    compared("one", "ours", [[5, 6], [7]])
    found = compared("one", "marian", [[5, 6], [8]])
    # Three tokens and two ends.
    assert found == {"seconds": 1.0, "identical": 0.5, "output_tokens": 5}


def test_outputs_of_other_weights_are_not_compared_with():
    compared("one", "ours", [[5, 6]])
    with pytest.raises(InputError, match="--fresh"):
        compared("other", "marian", [[5, 6]])


def test_a_run_that_was_trained_again_has_other_weights(work):
    """Whether its folder is named, or the file in it."""
    digests = []
    for content in (b"one", b"other"):
        file = work / "best.safetensors"
        file.write_bytes(content)
        assert digest_of_weights(work) == digest_of_weights(file)
        digests.append(digest_of_weights(file))
    assert len(set(digests)) == 2
