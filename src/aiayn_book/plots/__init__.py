"""Charts that chapters draw again and again, in one look.

Rows are queries and columns are keys, everywhere. Every function returns the chart and
takes a `description`, the text alternative that a screen reader speaks.

Paper: Figures 3–5 are attention maps; the other charts are this book's.
"""

try:
    from aiayn_book.plots.attention import attention_map
    from aiayn_book.plots.curves import curves
    from aiayn_book.plots.masks import mask_map
    from aiayn_book.plots.theme import as_svg, use_theme
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"The chapters draw with Altair, matplotlib and pandas, and {error.name} is "
        "missing: run  pip install 'aiayn[book]'  and start again.",
        name=error.name,
    ) from error

__all__ = [
    "as_svg",
    "attention_map",
    "curves",
    "mask_map",
    "use_theme",
]
