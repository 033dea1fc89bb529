"""What the book shows of `lasthop advise` is what the command says."""

from __future__ import annotations

import re
from dataclasses import replace

import answers
import pages
import pytest

TEXT = """A path

What would help
gain   who
3.0 x  the sender
    first = 1
2.0 x  the queue at
       the hop
    second = { long =
    "value" }
1.5 x  the receiver
    third = 3

Undecided: fourth."""
ANSWER = answers.Answer("lasthop advise", ["A path", "What would help"], ["third"])


@pytest.mark.parametrize("name", answers.ANSWERS)
def test_the_page_says_what_the_command_says(name: str) -> None:
    """`python bench/answers.py` writes it anew."""
    text = answers.PAGE.read_text(encoding="utf-8")
    others = {of: place for of, place in shown(text).items() if of != name}
    assert text == answers.page({**others, name: answers.written(answers.ANSWERS[name])})


def test_all_answers_are_on_the_page() -> None:
    assert set(shown(answers.PAGE.read_text(encoding="utf-8"))) == set(answers.ANSWERS)


def shown(page: str) -> dict[str, str]:
    """The answers of a page by their names."""
    places = re.finditer(pages.PLACE.format(word="answer"), page, re.MULTILINE)
    return {place["name"]: place["text"].strip() for place in places}


def test_dots_stand_for_the_remedies_that_are_left_out() -> None:
    assert answers.shortened(TEXT, ANSWER).splitlines() == [
        "A path",
        "",
        "What would help",
        "gain   who",
        "...",
        "1.5 x  the receiver",
        "    third = 3",
    ]


def test_a_remedy_is_found_by_words_that_are_in_two_of_its_lines() -> None:
    both = replace(ANSWER, remedies=['long = "value"'])
    assert answers.shortened(TEXT, both).splitlines()[3:] == [
        "gain   who",
        "...",
        "2.0 x  the queue at",
        "       the hop",
        "    second = { long =",
        '    "value" }',
        "...",
    ]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (replace(ANSWER, paragraphs=["Nothing"]), "0 have 'Nothing'"),
        (replace(ANSWER, remedies=["fourth"]), "0 have 'fourth'"),
        (replace(ANSWER, remedies=["the"]), "3 have 'the'"),
    ],
)
def test_what_is_not_there_just_once_is_refused(answer: answers.Answer, words: str) -> None:
    with pytest.raises(LookupError, match=words):
        answers.shortened(TEXT, answer)
