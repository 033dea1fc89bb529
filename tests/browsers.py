"""What tests in a browser need: Playwright, and Chromium as the system has it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is missing")
CHROMIUM = shutil.which("chromium")

#: Marks a test that is skipped, with these words, where it cannot be run.
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="it needs Chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        # Root has no sandbox; the pages are ours.
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()
