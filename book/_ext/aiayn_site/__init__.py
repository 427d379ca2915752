"""What makes of Jupyter Book's pages this site; each module says its part of it."""

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
    "teaching",
    "workshop",
)


def setup(app: Sphinx) -> dict:
    """Set up every part; where their order matters, their connections say so."""
    for name in PARTS:
        app.setup_extension(f"{__name__}.{name}")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
