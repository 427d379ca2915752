"""§5: from the first step of a training to its last, in one readable loop."""

import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

from tqdm import tqdm

from aiayn.checkpoint import load_tensors, save_tensors
from aiayn.data import Batch, normalise
from aiayn.errors import InputError
from aiayn.inference import evaluate_bleu, perplexity, translate
from aiayn.machine import describe_machine
from aiayn.model.description import describe_config, load_weights
from aiayn.run import RunFolder
from aiayn.training.averaging import average_checkpoints
from aiayn.training.config import TrainingConfig
from aiayn.training.divergence import RunningLoss, check_finite
from aiayn.training.interrupt import StopRequest
from aiayn.training.preparation import TrainingData
from aiayn.training.progress import Progress
from aiayn.training.trainer import Trainer


class Session:
    """One training from its first step, or the step it resumes at, to its last."""

    def __init__(
        self,
        config: TrainingConfig,
        run: RunFolder,
        data: TrainingData,
        trainer: Trainer,
    ) -> None:
        self.config, self.run, self.data, self.trainer = config, run, data, trainer
        self.group = trainer.processes
        self.progress = Progress()
        self.loss = RunningLoss(trainer.zero_sums(), run, self.group)
        self.clock = time.perf_counter()
        self.logged_at, self.untimed_tokens = 0.0, 0.0

    def begin(self) -> None:
        """Open the log with what the run depends on."""
        if self.group.is_main:
            self.run.tidy(step=-1)
        parameters = sum(p.numel() for p in self.trainer.model.parameters())
        self._log(
            event="begin",
            parameters=parameters,
            processes=self.group.world_size,
            precision=str(self.trainer.dtype).removeprefix("torch."),
            data=self.data.description,
            machine=describe_machine(self.group.device),
        )

    def resume(self) -> None:
        """Take up the state that was saved last.

        Raises:
            InputError: The state is damaged, or more steps are done than are to be.
        """
        tensors, info = self.run.load_state()
        self.trainer.load_state(tensors, info.get("adam_steps"), self.run.state)
        self.progress = progress = Progress.read(info, self.run.state)
        if progress.step > self.config.steps:
            raise InputError(
                f"{self.run.path} has {progress.step} steps behind it and cannot stop "
                f"at {self.config.steps}: give more, or leave the number out."
            )
        self.loss.resume(progress.totals, progress.step)
        self.clock = time.perf_counter() - self.progress.seconds
        self.logged_at = self.progress.seconds
        # The next record's sums hold them, its time does not.
        self.untimed_tokens = sum(progress.totals[2::3])
        if self.group.is_main:
            self.run.tidy(self.progress.step)

    def train(self, stop: StopRequest) -> None:
        """The loop."""
        config, progress = self.config, self.progress
        bar = tqdm(
            total=config.steps,
            initial=progress.step,
            unit="step",
            disable=None if config.progress and self.group.is_main else True,
        )
        with bar:
            for batches in self._batches():
                self.loss.add(self.trainer.step(progress.step + 1, batches))
                progress.step += 1
                progress.batch += len(batches)
                last = progress.step == config.steps
                if progress.step % config.log_every == 0 or last:
                    bar.set_postfix(self._record())
                if progress.step % config.validate_every == 0 or last:
                    self._check()
                    self._validate()
                    self._save_state()
                bar.update()
                if not last and self.group.any(stop.made):
                    self._check()
                    self._save_state()
                    raise KeyboardInterrupt(
                        f"Stopped after step {progress.step} of {config.steps}: "
                        f"continue with 'aiayn resume {self.run.path}'."
                    )

    def finish(self) -> None:
        """Average the last checkpoints, take the average as the model, and score it."""
        if self.group.is_main:
            paths = self.run.checkpoints(until=self.progress.step)
            weights, info = average_checkpoints(paths)
            self.run.require()
            save_tensors(self.run.average, weights, info, make_folder=False)
            self.run.drop_later(self.progress.step)
        self.group.wait()
        weights, _ = load_tensors(self.run.average)
        load_weights(self.trainer.model, weights, self.run.average)
        if self.group.is_main:
            self._log(event="average", **self._scores())
        self.group.wait()  # until the log is whole

    def _batches(self) -> Iterator[list[Batch]]:
        """The batches of each step that is still to be done."""
        progress, config = self.progress, self.config
        while progress.step < config.steps:
            epoch = self.data.training.epoch(progress.epoch, first=progress.batch)
            while progress.step < config.steps and (
                batches := list(islice(epoch, config.accumulate))
            ):
                yield batches
            if progress.step < config.steps:
                progress.epoch, progress.batch = progress.epoch + 1, 0

    def _record(self) -> dict[str, str]:
        """Log the loss since the last record; return what the progress bar shows."""
        smoothed, plain, tokens = self.loss.check()
        seconds = time.perf_counter() - self.clock
        speed = (tokens - self.untimed_tokens) / (seconds - self.logged_at)
        self.logged_at, self.untimed_tokens = seconds, 0.0
        self.loss.restart(self.progress.step)
        self._log(
            event="train",
            epoch=self.progress.epoch,
            loss=smoothed / tokens,
            cross_entropy=plain / tokens,
            learning_rate=self.trainer.learning_rate(self.progress.step),
            tokens=round(tokens),
            tokens_per_second=round(speed),
        )
        return {"loss": f"{smoothed / tokens:.3f}", "tokens/s": f"{speed:.0f}"}

    def _check(self) -> None:
        """Before anything is saved: are loss, weights and optimizer still numbers?"""
        self.loss.check()
        tensors, _ = self.trainer.state()
        check_finite(tensors.values(), self.run, self.progress.step)

    def _validate(self) -> None:
        """Score the model, save its weights, and note whether it is the best so far."""
        if self.group.is_main:
            began = time.perf_counter()
            scores = self._scores()
            self._log(event="validation", **scores)
            info = {
                "step": self.progress.step,
                "model": describe_config(self.config.model),
            }
            weights = self.trainer.model.state_dict()
            checkpoint = self.run.save_checkpoint(weights, info, self.config.keep)
            if scores["loss"] < self.progress.best_loss:
                self.progress.best_loss = scores["loss"]
                self.run.mark_best(checkpoint)
            self.logged_at += time.perf_counter() - began
        self.group.wait()

    def _scores(self) -> dict[str, float]:
        """Loss and BLEU (greedy, to be quick) on the validation split."""
        model, data = self.trainer.model, self.data
        result = perplexity(
            model, data.validation.epoch(0), bos_id=data.tokenizer.bos_id
        )
        scores = {"loss": result.loss, "perplexity": result.perplexity}
        text = data.to_translate
        if len(text):
            hypotheses = translate(
                text.source,
                model,
                data.tokenizer,
                beam_size=1,
                max_pieces=self.config.max_length,
            )
            references = [normalise(line) for line in text.target]
            scores["bleu"] = evaluate_bleu(hypotheses, references).score
        return scores

    def _save_state(self) -> None:
        """Write all that a resumed run needs."""
        self.progress.totals = self.group.gather(self.loss.sums)
        if not self.group.is_main:
            return
        self.progress.seconds = time.perf_counter() - self.clock
        tensors, adam_steps = self.trainer.state()
        info = {"progress": asdict(self.progress), "adam_steps": adam_steps}
        self.run.save_state(tensors, info)

    def _log(self, **record: Any) -> None:
        if self.group.is_main:
            seconds = round(time.perf_counter() - self.clock, 2)
            self.run.append_log(
                {"step": self.progress.step, "seconds": seconds} | record
            )
