"""§5 and §6.1: the scores of a model while it is trained, and its best checkpoint."""

from aiayn.data import normalise
from aiayn.inference import evaluate_bleu, perplexity, translate
from aiayn.storage import describe_config
from aiayn.training.preparation import TrainingData
from aiayn.training.run_log import RunLog
from aiayn.training.trainer import Trainer


def validate(trainer: Trainer, data: TrainingData, log: RunLog) -> None:
    """Score the model, save its weights, and copy them if they are the best so far."""
    run, progress = log.run, log.progress
    if trainer.processes.is_main:
        began = log.seconds()
        scores = validation_scores(trainer, data)
        log.write(event="validation", **scores)
        info = {"step": progress.step, "model": describe_config(trainer.config.model)}
        weights = trainer.model.state_dict()
        checkpoint = run.save_checkpoint(weights, info, trainer.config.keep)
        if scores["loss"] < progress.best_loss:
            progress.best_loss = scores["loss"]
            run.mark_best(checkpoint)
        progress.timed_from += log.seconds() - began
    trainer.processes.wait()


def validation_scores(trainer: Trainer, data: TrainingData) -> dict[str, float]:
    """Loss and BLEU on the validation split, in the training's precision.

    BLEU is that of greedy search, which is faster than a beam.
    """
    model, tokenizer, text = trainer.model, data.tokenizer, data.to_translate
    options = {"beam_size": 1, "max_pieces": trainer.config.max_length}
    if trainer.processes.device.type == "cuda":
        options["batch_tokens"] = 8192
    with trainer.autocast():
        batches = data.validation.epoch(0)
        result = perplexity(model, batches, bos_id=tokenizer.bos_id)
        hypotheses = translate(text.source, model, tokenizer, **options)
    scores = {"loss": result.loss, "perplexity": result.perplexity}
    if len(text):
        references = [normalise(line) for line in text.target]
        scores["bleu"] = evaluate_bleu(hypotheses, references).score
    return scores
