"""Where the links of a chapter lead from a copy of it, which may stand anywhere.

To the other chapters where those stand beside the copy, and to the book's site for all
else. A student's copy opens itself in Colab: from the branch `STUDENTS` of the
repository, to which a teacher pushes the students' chapters.
"""

import re
from collections.abc import Collection

from aiayn_book.html import pages_address
from tools.site.notebooks import COLAB_LABEL

STUDENTS = "students"
LINK = re.compile(
    r"\]\((?:\.\./book/(?P<page>[^)\s#]+)\.md|(?P<chapter>[\w-]+)\.ipynb|)"
    r"(?P<heading>#[^)\s]+)?\)"
)
COLAB = re.compile(rf"^{re.escape(COLAB_LABEL)}(?P<to>\S+)\)$\n*", re.MULTILINE)


def to_the_site(markdown: str, name: str, address: str, here: Collection[str]) -> str:
    """The text with its links out of the copy leading to the site.

    Args:
        markdown: as it stands in the chapter.
        name: the chapter's.
        address: the repository's.
        here: chapters that stand beside the copy. If it holds the chapter itself, the
            copy has that one's headings.
    """
    site = pages_address(address)

    def moved(link: re.Match) -> str:
        chapter, heading = link["chapter"] or name, link["heading"] or ""
        if link["page"]:
            return f"]({site}book/{link['page']}.html{heading})"
        if chapter in here:
            return link[0]
        return f"]({site}notebooks/{chapter}.html{heading})"

    return LINK.sub(moved, markdown)


def to_itself_in_colab(markdown: str, branch: str) -> str:
    """The text whose link to Colab opens the student's copy, not the solved chapter."""
    solved, own = f"/blob/{branch}/notebooks/", f"/blob/{STUDENTS}/"
    return COLAB.sub(lambda link: link[0].replace(solved, own), markdown)


def without_colab(markdown: str) -> str:
    """The text without a link to Colab, for a copy that is not to be published."""
    return COLAB.sub("", markdown)
