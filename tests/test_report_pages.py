"""Reports as their readers see them: bright or dark, on a desk or on a phone.

They need Chromium and Playwright; without, the tests say so and are skipped.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import browser as browser
from browsers import in_browser
from PIL import Image

pytestmark = in_browser

#: The contrast of text that WCAG 2 wants at level AA, and of large text.
CONTRAST, CONTRAST_OF_LARGE = 4.5, 3.0
#: Pixels of CSS that a word in a figure is high, at least: digits of a font of 10.
HEIGHT_OF_WORDS = 7.0

#: The contrast of each piece of text with what is behind it: [contrast, whether it is large, text].
CONTRASTS = """() => {
    const channels = color => color.match(/[\\d.]+/g).map(Number);
    const luminance = color => {
        const [r, g, b] = channels(color).slice(0, 3).map(value => {
            const part = value / 255;
            return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = element => {
        for (let one = element; one; one = one.parentElement) {
            const color = getComputedStyle(one).backgroundColor;
            if (channels(color)[3] !== 0) return color;
        }
        return "rgb(255, 255, 255)";
    };
    const found = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode.textContent.trim();
        const element = texts.currentNode.parentElement;
        if (!text || element.closest("svg, style, script")) continue;
        const style = getComputedStyle(element);
        const pair = [luminance(style.color), luminance(behind(element))];
        const contrast = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        found.push([contrast, large, text]);
    }
    return found;
}"""

#: The heights of the words of all figures.
HEIGHTS = """() => [...document.querySelectorAll("figure svg g[id*='text_']")]
    .map(word => word.getBoundingClientRect().height)
    .filter(height => height > 0)"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reports of a publication that is simulated in a few seconds."""
    folder = tmp_path_factory.mktemp("reports") / "ishac2001"
    command = [sys.executable, "-m", "lasthop", "reproduce", "ishac2001", "--quick", "-o"]
    subprocess.run([*command, str(folder)], check=True, capture_output=True)
    return folder


#: One publication, and one experiment.
PAGES = ("report.html", "fig5/report.html")


@pytest.fixture(params=PAGES)
def address(reports: Path, request: pytest.FixtureRequest) -> str:
    return (reports / str(request.param)).as_uri()


def opened(browser: Any, address: str, scheme: str, width: int) -> Iterator[Any]:
    """The page of a report in a window of this width."""
    tab = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    tab.goto(address)
    yield tab
    tab.close()


@pytest.fixture(params=("light", "dark"))
def desk(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from opened(browser, address, request.param, 1280)


@pytest.fixture
def phone(browser: Any, address: str) -> Iterator[Any]:
    yield from opened(browser, address, "light", 390)


def test_all_text_can_be_told_from_what_is_behind_it(desk: Any) -> None:
    found = desk.evaluate(CONTRASTS)
    assert len(found) > 30
    faint = [
        (round(contrast, 2), text)
        for contrast, large, text in found
        if contrast < (CONTRAST_OF_LARGE if large else CONTRAST)
    ]
    assert faint == []


def test_figures_are_as_bright_as_the_page(desk: Any) -> None:
    for figure in desk.query_selector_all("figure svg"):
        picture: Any = Image.open(io.BytesIO(figure.screenshot())).convert("L")
        paper = desk.evaluate("getComputedStyle(document.body).backgroundColor")
        of_page = sum(int(part) for part in paper.strip("rgb()").split(",")) / 3
        # A figure is paper at its corner, and ink somewhere.
        assert abs(picture.getpixel((1, 1)) - of_page) < 8
        least, most = picture.getextrema()
        assert most - least > 150


def test_a_page_is_as_wide_as_the_phone_and_only_figures_and_tables_are_moved_aside(
    phone: Any,
) -> None:
    assert phone.evaluate("document.documentElement.scrollWidth") == 390


def test_words_in_figures_are_legible_on_a_phone(phone: Any) -> None:
    heights = phone.evaluate(HEIGHTS)
    assert (heights == []) == (phone.query_selector("figure svg") is None)
    assert min(heights, default=HEIGHT_OF_WORDS) >= HEIGHT_OF_WORDS


def test_every_figure_says_what_it_shows(desk: Any) -> None:
    for figure in desk.query_selector_all("figure svg"):
        names = figure.get_attribute("aria-labelledby").split()
        texts = [desk.text_content(f"[id='{name}']") for name in names]
        assert len(texts) == 2
        assert all(texts)
