"""The page of all exercises: what the menus above the table do; and the slides."""

import pytest

PAGE = "book/teach/exercises.html"
ROWS = "[...document.querySelectorAll('table.exercise-list tbody tr')]"


def shown(browser) -> list[list[str]]:
    """The words of each row that can be seen."""
    return browser.run(
        f"return {ROWS}.filter(row => row.offsetParent)"
        ".map(row => [...row.cells].map(cell => cell.textContent.trim()))"
    )


def choose(browser, label: str, value: str) -> None:
    """Pick a value in the menu with that label."""
    browser.run(
        "const label = [...document.querySelectorAll('.exercise-filter label')]"
        f".find(label => label.textContent.startsWith('{label}'));"
        f"const menu = label.querySelector('select'); menu.value = '{value}';"
        "menu.dispatchEvent(new Event('change'));"
    )


@pytest.fixture
def listed(browser):
    """The page, with all of its rows shown."""
    browser.look(1280, "light")
    browser.open(PAGE)
    return browser


def test_menus_choose_rows(listed):
    """Alone and together; what is counted is what is seen."""
    every = shown(listed)
    assert len(every) >= 100
    choose(listed, "Kind", "derive")
    derive = shown(listed)
    assert derive == [row for row in every if row[1] == "derive"]
    choose(listed, "Chapter", "9")
    assert shown(listed) == [row for row in derive if row[0].startswith("9.")]
    words = "return document.querySelector('.exercise-filter output').value"
    counted = listed.run(words)
    minutes = sum(int(row[4]) for row in shown(listed))
    assert counted == f"{len(shown(listed))} shown, {minutes} minutes"
    choose(listed, "Kind", "")
    choose(listed, "Chapter", "")
    assert shown(listed) == every


def test_every_menu_has_a_name(listed):
    """For whoever hears the page instead of seeing it."""
    menus = listed.run(
        "return [...document.querySelectorAll('.exercise-filter select')]"
        ".map(menu => menu.labels.length)"
    )
    assert menus == [1, 1, 1]


def test_each_chapter_leads_to_its_slides(site):
    """And the list of all decks to each of them."""
    decks = {path.name for path in (site / "slides").glob("*.html")} - {"index.html"}
    chapters = [page for page in site.glob("notebooks/*.html") if page.name in decks]
    assert len(chapters) == len(decks) > 20
    for page in chapters:
        assert f'href="../slides/{page.name}"' in page.read_text("utf-8")
    listed = (site / "slides" / "index.html").read_text("utf-8")
    assert all(f'href="{name}"' in listed for name in decks)
