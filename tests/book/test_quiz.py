"""Quick checks: a form that needs nothing else, and plain text where forms are not."""

import re
from html.parser import HTMLParser

import pytest

from aiayn.errors import InputError
from aiayn_book import quick_check

ANSWERS = {"8 < 64": "No: that is 'less'.", "</script> & co": "Yes."}


def quiz():
    """A question with signs that HTML and scripts would trip over."""
    return quick_check('What is "√64"?', ANSWERS, correct="</script> & co")


class Elements(HTMLParser):
    """Start tags and the text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def test_a_form_that_a_screen_reader_can_read():
    """A legend asks, each radio button stands in its label, a live region replies."""
    page = Elements(quiz()._repr_html_())
    (form,) = page.named("form")
    radios = page.named("input")
    assert [radio["value"] for radio in radios] == ["0", "1"]
    assert {radio["name"] for radio in radios} == {form["id"]}
    assert len(page.named("label")) == len(radios)
    assert len(page.named("legend")) == 1
    (status,) = [a for a in page.named("p") if a.get("role") == "status"]
    assert status["aria-live"] == "polite"


def test_questions_and_answers_arrive_unharmed():
    """Signs of HTML are text, and an answer cannot end the script."""
    html = quiz()._repr_html_()
    assert html.count("</script>") == 1
    words = "".join(Elements(html).words)
    assert 'What is "√64"?' in words
    assert "8 < 64" in words


def test_nothing_is_asked_of_another_host():
    """No address, no import."""
    html = quiz()._repr_html_()
    assert not re.search(r"//|url\(|@import|import\(|\bsrc=|\bhref=", html)


def test_the_same_question_gives_the_same_page():
    """The identifier comes from the question."""
    assert quiz()._repr_html_() == quiz()._repr_html_()
    other = quick_check("Another?", ANSWERS, correct="8 < 64")
    assert other.id != quiz().id


def test_plain_text():
    """Question, lettered answers, and the right one with its reply."""
    lines = repr(quiz()).splitlines()
    assert lines[1:] == ["  (a) 8 < 64", "  (b) </script> & co", "Answer: (b) Yes."]


@pytest.mark.parametrize(
    ("answers", "correct", "words"),
    [
        ({"a": "x"}, "a", "two to six answers"),
        (dict.fromkeys("abcdefg", "x"), "a", "two to six answers"),
        ({"a": "x", "b": "y"}, "c", "none of the answers"),
        ({"a": "x", "b": " "}, "a", "'b' has no reply"),
    ],
)
def test_bad_questions_are_refused(answers, correct, words):
    """An author's slip is a sentence."""
    with pytest.raises(InputError, match=words):
        quick_check("Why?", answers, correct=correct)
