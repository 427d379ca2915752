"""What makes of Jupyter Book's pages this site; each module says its part of it."""

from importlib import import_module

from sphinx.application import Sphinx

PARTS = (
    "api",
    "audit_table",
    "callouts",
    "chapters",
    "content_security",
    "exercises",
    "figure_one",
    "formulas",
    "glossary_links",
    "glossary_page",
    "gpu_runs",
    "growth_charts",
    "speed_goals",
    "ledger",
    "link_previews",
    "live_model",
    "landing",
    "long_lines",
    "measured_numbers",
    "moved_pages",
    "offline_assets",
    "page_description",
    "page_frame",
    "reckoned",
    "reference_pages",
    "results",
    "run_times",
    "search_pages",
    "site_colours",
    "site_fonts",
    "speed_tables",
    "style_sheets",
    "workshop",
)


def setup(app: Sphinx) -> dict:
    """Set up every part; where their order matters, their connections say so."""
    about = {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
    for name in PARTS:
        about |= import_module(f"{__name__}.{name}").setup(app) or {}
    return about
