"""Studies by their names, and what every one of them writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lasthop.publications import Experiment
from lasthop.publications.study.published import Answer
from lasthop.publications.study.study import Study


def load(id: str) -> Study:
    """The study of an experiment, such as "koutsianas2007/fig4.2"."""
    publication, _, name = id.rpartition("/")
    return Experiment(publication, name).load()


def reported(id: str, folder: Path, answers: Sequence[Answer]) -> tuple[list[dict[str, Any]], str]:
    """The rows and the page in a study's folder: of this experiment, with all answers and pictures
    in them."""
    rows = json.loads((folder / "results.json").read_text())
    assert {f"{row['publication']}/{row['experiment']}" for row in rows} == {id}
    claims = [row["claim"] for row in rows if row["metric"] == "finding"]
    assert claims == [answer.claim for answer in answers]
    page = (folder / "report.html").read_text()
    assert page.count("<svg") == len(load(id).figures)
    return rows, page
