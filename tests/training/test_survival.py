"""What a training leaves behind when something outside of it goes wrong."""

import errno
import importlib
import math
import os
import secrets
import shutil
import subprocess
import sys
import threading
from contextlib import nullcontext
from dataclasses import replace
from subprocess import PIPE
from types import SimpleNamespace

import pytest
import torch
from torch import distributed

from aiayn.errors import InputError
from aiayn.storage import RunFolder, load_tensors, read_json, save_tensors, write_json
from aiayn.training import Trainer, resume_training, train
from aiayn.training.distributed import processes
from aiayn.training.processes import Processes
from aiayn.training.train import Progress, RunLog
from tests.training.number_words import leave_on_disk

pytestmark = pytest.mark.costly

# The module: `aiayn.training.train` is the function, as an attribute of its package.
TRAIN = importlib.import_module("aiayn.training.train")
RUN_LOG = importlib.import_module("aiayn.training.run_log")
VALIDATION = importlib.import_module("aiayn.training.validation")

HOLD = """
import sys
from pathlib import Path
from aiayn.storage import hold
with hold(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def before_step(monkeypatch, number, do):
    """Have something done right before a step."""
    step = Trainer.step

    def with_event(self, now, batches):
        if now == number:
            do()
        return step(self, now, batches)

    monkeypatch.setattr(Trainer, "step", with_event)


def damage(tensor, value):
    """Put a value into a tensor, as a wrong step would."""
    with torch.no_grad():
        tensor.view(-1)[0] = value


def test_a_run_killed_between_its_first_checkpoint_and_state_begins_again(
    config, tmp_path, monkeypatch
):
    """`aiayn train` refuses such a folder, so `aiayn resume` has to take it."""
    whole = train(replace(config, output=tmp_path / "whole"))

    def killed(self):
        raise SystemExit

    monkeypatch.setattr(RunLog, "save_state", killed)
    with pytest.raises(SystemExit):
        train(config)
    monkeypatch.undo()
    run = RunFolder(config.output)
    assert run.checkpoints()
    assert not run.state.exists()
    with pytest.raises(InputError, match="continue a run with resume_training"):
        train(config)
    before_step(monkeypatch, 3, lambda: killed(None))  # and once more, before another
    with pytest.raises(SystemExit):
        resume_training(config.output)
    monkeypatch.undo()
    resume_training(config.output)
    assert run.average.read_bytes() == whole.run.average.read_bytes()
    assert [r["event"] for r in run.read_log()].count("begin") == 1


def test_checkpoints_whose_state_has_gone_are_not_overwritten(config):
    run = train(config).run
    kept = {path: path.read_bytes() for path in run.checkpoints()}
    run.state.unlink()
    with pytest.raises(InputError, match=r"no state\.safetensors.*checkpoints can"):
        resume_training(config.output)
    assert {path: path.read_bytes() for path in run.checkpoints()} == kept


def test_a_checkpoint_later_than_the_steps_now_asked_for_is_not_overwritten(config):
    """A training that ends before its first validation validates at its end."""
    run = train(replace(config, validate_every=100)).run
    run.state.unlink()
    run.average.unlink()
    with pytest.raises(InputError, match=r"no state\.safetensors.*checkpoints can"):
        resume_training(config.output, steps=8)
    assert len(run.checkpoints()) == 1


@pytest.mark.parametrize("kept", ["average", "best"])
def test_a_model_that_was_kept_alone_is_not_overwritten(config, kept):
    """What one passes on of a run: its best weights, and what they need."""
    run = train(config).run
    kept = getattr(run, kept)
    for path in run.path.glob("*.safetensors"):
        if path != kept:
            path.unlink()
    content = {path: path.read_bytes() for path in run.path.iterdir()}
    with pytest.raises(InputError, match="holds a run or a model already"):
        train(config)
    with pytest.raises(InputError, match=r"no state\.safetensors"):
        resume_training(config.output)
    assert {path: path.read_bytes() for path in run.path.iterdir()} == content


def test_what_killed_writes_left_behind_is_removed(config):
    run = train(config).run
    left = run.path / ".state.safetensors.0123abcd.part"
    left.write_bytes(b"half")
    resume_training(config.output)
    assert not left.exists()


def test_the_speed_is_that_of_the_steps_and_not_of_validations(config, monkeypatch):
    """By a clock on which a step takes a second, and a validation an hour.

    The training is stopped after 12 steps. The record of steps 11 to 15 includes the
    tokens from before the stop, and their time.
    """
    clock, step, stop = SimpleNamespace(now=0.0), Trainer.step, threading.Event()

    def timed_step(self, number, batches):
        clock.now += 1
        if number == 12:
            stop.set()
        return step(self, number, batches)

    def timed_scores(trainer, data):
        clock.now += 3600
        return {"loss": 1.0}

    monkeypatch.setattr(Trainer, "step", timed_step)
    for module in (TRAIN, VALIDATION):
        monkeypatch.setattr(module, "validation_scores", timed_scores)
    clock.perf_counter = lambda: clock.now
    monkeypatch.setattr(RUN_LOG, "time", clock)
    with monkeypatch.context() as patch:
        patch.setattr(TRAIN, "_stop_request", lambda: nullcontext(stop))
        with pytest.raises(KeyboardInterrupt, match="Stopped after step 12 of 24"):
            train(config)
    clock.now += 10_000
    log = resume_training(config.output).log
    records = [record for record in log if record["event"] == "train"]
    assert [record["step"] for record in records] == [5, 10, 15, 20, 24]
    assert [record["tokens_per_second"] for record in records] == [
        round(record["tokens"] / seconds)
        for record, seconds in zip(records, [5, 5, 5, 5, 4], strict=True)
    ]


def test_a_run_of_the_first_edition_is_resumed(config):
    """Its configuration had `plain`, and its state did not have `timed_from`."""
    run = train(replace(config, steps=8)).run
    values = read_json(run.config)
    write_json(run.config, values | {"plain": not values.pop("fast")})
    tensors, info = load_tensors(run.state)
    del info["progress"]["timed_from"]
    save_tensors(run.state, tensors, info)
    log = resume_training(run, steps=16).log
    assert log[-1]["step"] == 16
    assert all(r["tokens_per_second"] > 0 for r in log if r["event"] == "train")


def test_a_finished_run_resumed_is_the_same_run(config):
    """Killed after its last line was logged, or resumed by mistake."""
    before = train(config).log
    after = resume_training(config.output).log
    assert [r["event"] for r in after] == [r["event"] for r in before]
    assert after[-1]["loss"] == before[-1]["loss"]


def test_a_training_is_not_shortened_after_the_fact(config):
    """What is on disk stays: its configuration must tell how many steps were done."""
    run = train(config).run
    content = {path: path.read_bytes() for path in run.path.iterdir()}
    with pytest.raises(InputError, match="has done 24 steps already"):
        resume_training(run.path, steps=23)
    assert {path: path.read_bytes() for path in run.path.iterdir()} == content


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot lock a folder")
def test_two_trainings_do_not_write_to_one_folder(config):
    """Neither a second 'resume' nor a 'train' harms the run that is being written."""
    folder = config.output
    train(config)
    # As in a first minute: nothing is saved yet that 'train' would find.
    for path in folder.glob("*.safetensors"):
        path.unlink()
    content = {path: path.read_bytes() for path in folder.iterdir()}
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, folder], stdin=PIPE, stdout=PIPE, text=True
    )
    try:
        assert other.stdout.readline() == "held\n"
        for second in (lambda: resume_training(folder), lambda: train(config)):
            with pytest.raises(InputError, match="is in use: another training"):
                second()
        assert {path: path.read_bytes() for path in folder.iterdir()} == content
    finally:
        other.kill()
        other.wait()
    assert train(config).log[-1]["step"] == config.steps


def test_checkpoints_stand_in_the_order_of_their_steps(tmp_path):
    """By number: as text, step 1,000,000 would come before step 999,999."""
    run = RunFolder(tmp_path)
    for step in (999_999, 1_000_000, 5):
        (tmp_path / f"step-{step:06d}.safetensors").touch()
    (tmp_path / "step-last.safetensors").touch()
    names = [path.name for path in run.checkpoints()]
    assert names == [f"step-{step:06d}.safetensors" for step in (5, 999_999, 1_000_000)]
    assert [path.name for path in run.checkpoints(until=5)] == names[:1]


def test_later_checkpoints_do_not_count_among_those_that_are_kept(tmp_path):
    """A kill may leave one later than the state; the new ones are not it."""
    run = RunFolder(tmp_path)
    run.config.touch()
    for step in (99, 8, 16):
        run.save_checkpoint({"weight": torch.ones(1)}, {"step": step}, keep=1)
    assert [path.name for path in run.checkpoints(until=16)] == [
        "step-000016.safetensors"
    ]


@pytest.mark.parametrize(("rank", "sums"), [(0, [5, 7, 9]), (1, [0, 0, 0])])
def test_the_main_process_takes_up_the_sums(config, rank, sums):
    """The first edition saved those of two processes one after the other."""
    trainer = SimpleNamespace(
        zero_sums=lambda: torch.zeros(3), processes=Processes(rank, world_size=2)
    )
    progress = Progress(step=7, totals=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert RunLog(RunFolder("run"), trainer, progress).sums.tolist() == sums


def test_an_average_is_of_steps_that_were_done(config):
    """A kill may leave a checkpoint later than the state; fewer steps may be asked."""
    run = train(config).run
    later = run.path / "step-000099.safetensors"
    later.write_bytes(run.checkpoints()[-1].read_bytes())
    run.average.unlink()
    resume_training(config.output)
    first, last = (load_tensors(path)[0] for path in run.checkpoints()[:2])
    average, _ = load_tensors(run.average)
    for name, mean in average.items():
        expected = (first[name].double() + last[name].double()) / 2
        torch.testing.assert_close(mean.double(), expected, rtol=0, atol=1e-7)
    assert run.weights() == run.average
    assert not later.exists()


def test_an_average_that_training_has_left_behind_does_not_translate(
    config, monkeypatch
):
    """Finished, resumed with more steps, and stopped: the best is newer."""
    run = train(replace(config, steps=16)).run
    assert run.weights() == run.average

    def stop():
        raise KeyboardInterrupt

    before_step(monkeypatch, 20, stop)
    with pytest.raises(KeyboardInterrupt):
        resume_training(run, steps=24)
    assert run.weights() == run.best


def test_a_checkpoint_that_is_gone_is_named_and_the_best_is_as_it_was(tmp_path):
    run = RunFolder(tmp_path)
    run.config.touch()
    run.best.write_bytes(b"old")
    gone = tmp_path / "step-000009.safetensors"
    with pytest.raises(FileNotFoundError) as caught:
        run.mark_best(gone)
    assert caught.value.filename == str(gone)
    assert run.best.read_bytes() == b"old"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_disk_that_takes_no_more_leaves_the_last_state(config, monkeypatch, number):
    """Full, read-only, broken: one sentence, and the state of step 8 as it was."""
    flush = os.fsync

    def refuse(handle):
        raise OSError(number, os.strerror(number))

    before_step(monkeypatch, 12, lambda: monkeypatch.setattr(os, "fsync", refuse))
    with pytest.raises(InputError, match=os.strerror(number)):
        train(config)
    run = RunFolder(config.output)
    assert load_tensors(run.state)[1]["progress"]["step"] == 8
    assert load_tensors(run.checkpoints()[-1])[1]["step"] == 8
    assert not list(run.path.glob(".*.part"))
    monkeypatch.undo()
    assert os.fsync is flush
    assert math.isfinite(resume_training(config.output).log[-1]["loss"])


def test_a_log_on_a_full_disk_is_a_sentence(config, monkeypatch):
    run = RunFolder(config.output)

    def fill():
        run.log.unlink()
        run.log.symlink_to("/dev/full")

    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    before_step(monkeypatch, 12, fill)
    with pytest.raises(InputError, match=r"log\.jsonl cannot be written: No space"):
        train(config)
    assert load_tensors(run.state)[1]["progress"]["step"] == 8


def test_a_folder_that_is_removed_under_a_training(config, monkeypatch):
    before_step(monkeypatch, 12, lambda: shutil.rmtree(config.output))
    with pytest.raises(InputError, match="was moved or removed"):
        train(config)
    assert not config.output.exists(), "half a run was made anew"


def before_write(monkeypatch, number, do):
    """Have something done right before a file's write, and count the writes."""
    writes, token_hex = [], secrets.token_hex

    def with_event(size):  # the name of the incomplete file
        writes.append(size)
        if len(writes) == number:
            do()
        return token_hex(size)

    monkeypatch.setattr(secrets, "token_hex", with_event)
    return writes


def test_a_folder_that_is_moved_before_any_write_is_not_made_anew(
    config, tmp_path, monkeypatch
):
    """Put back, it goes on to the same weights."""
    away = tmp_path / "away"
    leave_on_disk(config.corpus, tmp_path, monkeypatch)  # it writes more files
    with monkeypatch.context() as patch:
        writes = before_write(patch, 0, do=None)
        expected = train(replace(config, output=tmp_path / "whole")).run.average
    assert len(writes) > 10
    for number in range(2, len(writes) + 1):  # the first one makes it a run
        with monkeypatch.context() as patch:
            before_write(patch, number, lambda: config.output.rename(away))
            with pytest.raises(InputError, match=f"{config.output}.*cannot be written"):
                train(config)
        assert not config.output.exists(), f"made anew by write {number}"
        away.rename(config.output)
        resumed = resume_training(config.output).run
        assert resumed.average.read_bytes() == expected.read_bytes(), number
        shutil.rmtree(config.output)


def test_a_folder_that_is_moved_before_it_is_resumed_is_not_made_anew(
    config, tmp_path, monkeypatch
):
    train(config)
    find = TRAIN.find_corpus

    def moved(*arguments):
        config.output.rename(tmp_path / "away")
        return find(*arguments)

    monkeypatch.setattr(TRAIN, "find_corpus", moved)
    with pytest.raises(InputError, match=f"{config.output} cannot be written: No such"):
        resume_training(config.output)
    assert not config.output.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_a_real_limit_on_files_is_a_sentence_and_the_old_file_stays(tmp_path):
    """Not a mock: the system itself refuses to write on."""
    path = tmp_path / "state.safetensors"
    save_tensors(path, {"a": torch.ones(10)}, {"step": 1})
    before = path.read_bytes()
    script = (
        "import sys, torch; from pathlib import Path\n"
        "from aiayn.storage import save_tensors\n"
        "from aiayn.errors import InputError\n"
        "try: save_tensors(Path(sys.argv[1]), {'a': torch.ones(10**6)}, {})\n"
        "except InputError as error: print(error)\n"
    )
    limit = 2**20

    def limited():
        import resource  # which Windows lacks

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-c", script, path],
        preexec_fn=limited,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "cannot be written: File too large" in done.stdout, done.stderr
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("part", ["weights", "Adam"])
def test_weights_that_are_no_numbers_are_never_saved(config, monkeypatch, part):
    """The last step before a validation may ruin them, its own loss being fine."""
    step = Trainer.step

    def ruin(self, number, batches):
        totals = step(self, number, batches)
        if number == 16:
            weight = next(self.model.parameters())
            state = self.optimizers.adam.state[weight]["exp_avg_sq"]
            damage(weight if part == "weights" else state, math.inf)
        return totals

    monkeypatch.setattr(Trainer, "step", ruin)
    with pytest.raises(InputError, match=r"Training has diverged.* after step 16\."):
        train(config)
    run = RunFolder(config.output)
    assert load_tensors(run.state)[1]["progress"]["step"] == 8
    assert [load_tensors(path)[1]["step"] for path in run.checkpoints()] == [8]


def test_a_loss_that_is_no_number_stops_before_the_next_validation(config, monkeypatch):
    """However rarely the log is written, no later state replaces the good one."""
    config = replace(config, log_every=1000)
    step = Trainer.step
    monkeypatch.setattr(
        Trainer,
        "step",
        lambda self, number, batches: (
            step(self, number, batches) * (math.nan if number == 13 else 1.0)
        ),
    )
    with pytest.raises(InputError) as stopped:
        train(config)
    assert "is not finite after step 16" in str(stopped.value)
    assert '"clip_norm": 1 or "precision": "fp32"' in str(stopped.value)
    run = RunFolder(config.output)
    assert load_tensors(run.state)[1]["progress"]["step"] == 8
    # And the advice works: another rate from the kept state on.
    monkeypatch.undo()
    choices = read_json(run.config)
    write_json(run.config, choices | {"learning_rate_scale": 0.1, "clip_norm": 1.0})
    assert math.isfinite(resume_training(config.output).log[-1]["loss"])


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_an_encoder_without_decoder_layers_is_saved_and_goes_on(
    config, tmp_path, optimizer
):
    """Nothing moves it, so no optimizer knows anything of it."""
    config = replace(config, optimizer=optimizer)
    model = replace(config.model, num_decoder_layers=0)
    whole = train(replace(config, model=model, output=tmp_path / "whole"))
    train(replace(config, model=model, steps=8))
    resumed = resume_training(config.output, steps=config.steps)
    expected = whole.model.state_dict()
    for name, tensor in resumed.model.state_dict().items():
        assert torch.equal(tensor, expected[name]), name


@pytest.mark.parametrize("begun", ["adam", "muon"])
def test_what_one_optimizer_remembers_is_no_state_of_the_other(config, begun):
    """Somebody changed config.json, and wants to go on."""
    train(replace(config, optimizer=begun, steps=8))
    path = RunFolder(config.output).config
    other = {"adam": "muon", "muon": "adam"}[begun]
    write_json(path, read_json(path) | {"optimizer": other})
    with pytest.raises(InputError, match="is not the state of this training"):
        resume_training(config.output, steps=16)


def test_a_flag_counts_that_any_process_has_set(monkeypatch):
    """all_reduce stands for another process, whose number is 1."""
    monkeypatch.setattr(distributed, "all_reduce", lambda value: value.add_(1))
    assert Processes(world_size=2).any(False)
    assert not Processes().any(False)
    assert Processes(world_size=2).sum(torch.tensor(2)) == 3


def test_a_variable_of_torchrun_alone_is_no_torchrun(monkeypatch):
    """As in a shell that a launcher of another kind began."""
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOCAL_RANK", "0")
    with processes(torch.device("cpu")) as group:
        assert group.world_size == 1


def torchrun(monkeypatch, rank, world_size):
    """What torchrun sets."""
    values = {"LOCAL_RANK": rank, "RANK": rank, "WORLD_SIZE": world_size}
    for name, value in values.items():
        monkeypatch.setenv(name, str(value))


def test_processes_that_cannot_find_one_another_get_a_sentence(monkeypatch):
    """As under mpirun, which names no address."""
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    torchrun(monkeypatch, rank=0, world_size=2)
    with (
        pytest.raises(InputError, match=r"processes cannot join: .*MASTER_ADDR"),
        processes(torch.device("cpu")),
    ):
        pass


def test_several_processes_on_one_of_apple_s_gpus_get_a_sentence(monkeypatch):
    torchrun(monkeypatch, rank=1, world_size=2)
    with (
        pytest.raises(InputError, match="finds no device 'mps:1'"),
        processes(torch.device("mps")),
    ):
        pass


def test_more_processes_than_gpus_get_a_sentence(config, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    torchrun(monkeypatch, rank=1, world_size=2)
    with pytest.raises(InputError, match="finds no device 'cuda:1'"):
        train(replace(config, device="cuda", precision="fp32"))
    assert not config.output.exists()


ENDING = """
import atexit
atexit.register(lambda: print(_group))  # what is registered first is called last
import torch
from aiayn.training.distributed import _group, processes

with processes(torch.device("cpu")) as group:
    group.sum(torch.ones(1))
print(len(_group))
"""


def test_a_group_ends_before_python_does():
    """Its threads must not ask for Python's lock when nobody can have it any more."""
    alone = {"LOCAL_RANK": "0", "RANK": "0", "WORLD_SIZE": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", ENDING],
        env=os.environ | alone | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.split() == ["1", "[]"]
