"""The page "What if?" in a browser: it simulates what `lasthop run` simulates.

It needs Chromium, Playwright and Rust's libraries for WebAssembly; without, the tests say so and
are skipped.
"""

from __future__ import annotations

import functools
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import browser as browser
from browsers import in_browser

import lasthop
from lasthop import Scenario

ROOT = Path(__file__).resolve().parent.parent
PRESETS = (
    "examples/geo-lossy",
    "examples/geo-clean",
    "bbn8333/sim1",
    "koutsianas2007/fig4.2",
    "ishac2001/network",
    "yavatkar1994/path",
    "obanaik2003/spep",
)
#: Milliseconds that a browser may take on a busy machine.
PATIENCE = 60_000


def _has_wasm() -> bool:
    found = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True)
    folder = Path(found.stdout.strip()) / "lib" / "rustlib" / "wasm32-unknown-unknown"
    return found.returncode == 0 and folder.is_dir()


pytestmark = [
    in_browser,
    pytest.mark.skipif(not _has_wasm(), reason="it needs Rust's wasm32-unknown-unknown"),
]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the page is served."""
    folder = tmp_path_factory.mktemp("what-if")
    build = [sys.executable, str(ROOT / "docs" / "what_if.py"), str(folder)]
    subprocess.run([*build, "--", "--quiet", "--locked"], check=True)
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


class Page:
    """The page in a browser."""

    def __init__(self, browser: Any, address: str, settings: str, **options: Any) -> None:
        self.tab = browser.new_page(reduced_motion="reduce", **options)
        self.faults: list[str] = []
        self.tab.on("pageerror", lambda error: self.faults.append(str(error)))
        self.tab.on("console", lambda said: self.faults.append(said.text))
        self.tab.goto(f"{address}#{settings}")
        self.settle()

    def settle(self) -> None:
        """Waits until it shows what its controls say."""
        done = "document.body.dataset.ready === location.hash.slice(1)"
        self.tab.wait_for_function(done, timeout=PATIENCE)

    def digests(self) -> list[str]:
        data = self.tab.evaluate("({...document.body.dataset})")
        return [data["digestA"], data["digestB"]]

    def digests_of_files(self, seed: int = 1) -> list[str]:
        """Those of the scenario files that it shows, as `lasthop run` has them."""
        texts = [self.tab.text_content(f"#file-{side}") for side in "ab"]
        return [lasthop.run(Scenario.from_toml(text), seed=seed).digest for text in texts]

    def said(self) -> str:
        text: str = self.tab.inner_text("#answer")
        return text


@pytest.mark.parametrize("preset", PRESETS)
def test_both_sides_of_a_preset_have_the_digests_of_lasthop_run(
    browser: Any, address: str, preset: str
) -> None:
    page = Page(browser, address, f"from={preset}")
    assert page.digests() == page.digests_of_files()
    assert page.faults == []
    assert "on the left" in page.said()
    page.tab.close()


def test_presets_are_the_cells_of_their_experiments(browser: Any, address: str) -> None:
    page = Page(browser, address, "from=bbn8333/sim1")
    scenario = Scenario.load("bbn8333/sim1").set(
        {
            "sweep": {},
            "links.*.rate": "1.5 Mbit/s",
            "links.*.delay": "320 ms",
            "links.0.forward.errors.bit": 1.56e-5,
            "links.0.backward.errors.bit": 1.56e-5,
        }
    )
    ran = [
        lasthop.run(scenario, settings={"flows.0.tcp.eten.report": report})
        for report in ("none", "backward")
    ]
    assert page.digests() == [of.digest for of in ran]
    rate = page.tab.inner_text("#numbers tbody tr:first-child")
    assert f"{ran[0].rows['payload_bps'][0] / 1e3:.1f} kb/s" in rate
    page.tab.close()


def test_every_remedy_can_be_chosen_and_runs(browser: Any, address: str) -> None:
    page = Page(browser, address, "from=examples/geo-lossy&duration=10")
    choices = page.tab.eval_on_selector_all(
        "select[name=b] option", "options => options.map(option => option.value)"
    )
    assert len(choices) == len(set(choices)) > 30
    assert {"congestion-bbr", "snoop", "SPEP", "SRP"} <= set(choices)
    seen = set()
    for choice in choices:
        page.tab.select_option("select[name=b]", choice)
        page.settle()
        assert page.tab.inner_text("#mistake") == "", choice
        shown = page.tab.evaluate("new URLSearchParams(document.body.dataset.ready).get('b')")
        assert shown == choice
        seen.add(page.digests()[1])
        if choice in ("congestion-bbr", "spoofer-with-the-hop's-rate", "SPEP", "SRP"):
            assert page.digests() == page.digests_of_files(), choice
    assert len(seen) > 20
    assert page.faults == []
    page.tab.close()


def test_a_slider_moved_by_the_keyboard_is_run_and_kept_in_the_address(
    browser: Any, address: str
) -> None:
    page = Page(browser, address, "from=examples/geo-lossy&duration=10")
    before = page.digests()
    for name, key in (("loss", "Home"), ("rate", "ArrowRight"), ("seed", "ArrowRight")):
        page.tab.focus(f"input[name={name}]")
        page.tab.keyboard.press(key)
    page.tab.wait_for_function(
        "before => document.body.dataset.digestA !== before", arg=before[0], timeout=PATIENCE
    )
    page.settle()
    settings = page.tab.evaluate("location.hash.slice(1)")
    assert "loss=0" in settings
    assert "rate=" in settings
    seed = page.tab.evaluate("new URLSearchParams(location.hash.slice(1)).get('seed')")
    assert page.digests() == page.digests_of_files(int(seed))
    again = Page(browser, address, settings)
    assert again.digests() == page.digests()
    again.tab.close()
    page.tab.close()


def test_an_outage_and_losses_one_by_one_are_run(browser: Any, address: str) -> None:
    page = Page(browser, address, "from=examples/geo-clean&duration=20&outage=3&loss=0.01")
    assert page.digests() == page.digests_of_files()
    assert "outages" in page.tab.text_content("#file-a")
    page.tab.close()


@pytest.mark.parametrize(
    "settings",
    ["from=nowhere", "from=examples/geo-lossy&a=tea&rate=-1&loss=much&damaged=1", "%%%&=&&from"],
)
def test_nonsense_in_the_address_is_left_out(browser: Any, address: str, settings: str) -> None:
    page = Page(browser, address, settings)
    assert page.tab.evaluate("location.hash").startswith("#from=examples%2Fgeo-lossy&a=as-is")
    assert page.faults == []
    page.tab.close()


def test_it_fits_a_phone_is_dark_where_that_is_wanted_and_can_be_read_aloud(
    browser: Any, address: str
) -> None:
    options = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
    page = Page(browser, address, "", **options)
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= 360
    light = page.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(json.loads(light.replace("rgb(", "[").replace(")", "]"))) < 200
    unnamed = page.tab.eval_on_selector_all(
        "input, select, button",
        "all => all.filter(of => !(of.labels?.length || of.ariaLabel || of.textContent))"
        ".map(of => of.outerHTML)",
    )
    assert unnamed == []
    titles = page.tab.eval_on_selector_all("svg title", "all => all.map(of => of.textContent)")
    assert len(titles) == 4
    assert all("over time" in title for title in titles)
    page.tab.close()


def test_it_is_played_and_stopped(browser: Any, address: str) -> None:
    page = Page(browser, address, "from=examples/geo-lossy&duration=10")
    assert page.tab.input_value("#moment") == "1000"
    page.tab.click("#play")
    page.tab.wait_for_function("0 < moment.value && moment.value < 900", timeout=PATIENCE)
    assert page.tab.inner_text("#play") == "Pause"
    page.tab.click("#play")
    stopped = page.tab.input_value("#moment")
    page.tab.wait_for_timeout(100)
    assert page.tab.input_value("#moment") == stopped
    assert page.tab.inner_text("#play") == "Play"
    page.tab.close()
