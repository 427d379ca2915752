"""§5.4: the minimum of a smoothed loss, against which chapters hold their losses."""

import math


def smoothing_floor(vocab_size: int, smoothing: float = 0.1) -> float:
    r"""The minimum of a smoothed loss: the entropy of its target, in nats.

    $$H(q) = -\sum_t q(t) \log q(t), \quad q(t) = (1 - ε)\, [t = y] + ε / V$$

    Args:
        vocab_size: V.
        smoothing: The paper's ε.

    Paper: §5.4 does not mention it.

    >>> round(smoothing_floor(37_000), 3)
    1.377
    """
    if smoothing == 0:
        return 0.0
    wrong = smoothing / vocab_size
    right = 1 - smoothing + wrong
    return -right * math.log(right) - (vocab_size - 1) * wrong * math.log(wrong)
