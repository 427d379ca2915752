"""Other libraries have an equal of the Transformer, and of no other model of ours."""

from typing import Any

from aiayn.errors import InputError
from aiayn.model import Transformer


def require_transformer(model: Any) -> Transformer:
    """The model itself, if it is a Transformer.

    Raises:
        InputError: It is something else, a `RecurrentTranslator` for instance.
    """
    if not isinstance(model, Transformer):
        raise InputError(
            f"A {type(model).__name__} has no equal in other libraries; only a "
            "Transformer is exported."
        )
    return model
