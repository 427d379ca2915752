"""What an experiment could have detected: the power of the rule of two standard errors.

A verdict by experiment calls a difference real where it is larger than two standard
errors. How often that rule finds a true effect depends on the effect's size, and an
experiment that would rarely find the paper's effect decides nothing by missing it.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist, mean, stdev

ENOUGH = 0.8  # the power that is usually asked of a study


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean of paired differences, one for each seed, and its standard error.

    >>> mean_and_error([1.0, 2.0, 3.0])
    (2.0, 0.5773502691896258)
    """
    return mean(values), stdev(values) / math.sqrt(len(values))


def power(effect: float, standard_error: float) -> float:
    """How often a true effect is found, in the normal approximation.

    >>> round(power(0.9, 0.835), 2)  # an effect of about one standard error
    0.18
    """
    return NormalDist().cdf(abs(effect) / standard_error - 2)


def smallest_effect(standard_error: float) -> float:
    """The true effect that is found in four of five repetitions: 2.84 standard errors.

    >>> round(smallest_effect(0.5), 2)
    1.42
    """
    return (2 + NormalDist().inv_cdf(ENOUGH)) * standard_error
