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
        kind = type(model)
        raise InputError(
            "Only a Transformer of aiayn's has an equal in other libraries, and this "
            f"is of {kind.__module__}.{kind.__qualname__}. If one is wrapped in it, "
            "give that one (of torch.compile it is _orig_mod)."
        )
    return model
