"""§5.3: the learning rate, equation (3)."""

from aiayn.errors import InputError


def noam_rate(step: int, d_model: int, warmup_steps: int = 4000) -> float:
    r"""The learning rate at a step: a linear rise, then an inverse square root.

    $$lrate = d_\text{model}^{-0.5} · \min(step^{-0.5}, step · warmup\_steps^{-1.5})$$

    Args:
        step: Optimizer steps, counted from 1.
        d_model: Width of the model.
        warmup_steps: Length of the rise; the peak,
            $(d_\text{model} · warmup)^{-0.5}$, is reached at its end.

    Returns:
        The learning rate.

    Raises:
        InputError: step or warmup_steps is below 1.

    Paper: §5.3, equation (3). The name is tensor2tensor's, after Noam Shazeer.

    >>> round(noam_rate(4000, d_model=512), 6)  # the base model's peak
    0.000699
    """
    if step < 1 or warmup_steps < 1:
        raise InputError(
            f"Steps are counted from 1 and warmup_steps must be at least 1, not step = "
            f"{step} and warmup_steps = {warmup_steps}."
        )
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
