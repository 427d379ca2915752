"""What the book's tests measure with."""

import altair as alt
import vl_convert


def luminance(colour):
    """Relative luminance of a #rrggbb colour, as WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """The contrast ratio of two colours, between 1 and 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def drawn(chart):
    """The chart as SVG, drawn by the Vega-Lite that this Altair speaks."""
    version = ".".join(alt.VEGALITE_VERSION.lstrip("v").split(".")[:2])
    return vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=version)
