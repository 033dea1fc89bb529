"""Publications are found from their folders."""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path

import compare
import pytest
import tables

from lasthop import library, publications
from lasthop.errors import UserError
from lasthop.publications import bbn8333
from lasthop.publications.bbn8333.cases import LTN
from lasthop.publications.study.study import Study

ROOT = Path(__file__).resolve().parent.parent


def test_every_study_is_listed_by_its_folder_under_its_own_name() -> None:
    found = {}
    for module in pkgutil.walk_packages(publications.__path__, f"{publications.__name__}."):
        study = getattr(importlib.import_module(module.name), "STUDY", None)
        if isinstance(study, Study):
            found[study.name] = study
    listed = {of.id: of.load() for of in publications.experiments()}
    assert listed == found
    assert len(listed) == 8 + 17 + 3 + 8 + 12 + 6 + 11


def test_every_publication_has_what_it_published_a_page_and_a_table_of_each_experiment() -> None:
    for publication, names in publications.publications().items():
        assert library.published(publication.partition("/")[0])["title"]
        page = ROOT / "docs" / "publications" / f"{publication.replace('/', '-')}.md"
        assert publication.partition("/")[0] in page.read_text()
        assert set(publications.book(publication)) == set(names)


def test_what_the_book_shows_of_a_publication_is_kept_with_the_time_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {"metric": "goodput_bps", "published": None, "case": {**LTN, "errors": "both"}}
    other: dict[str, object] = {"metric": "timeouts", "published": None, "case": {}}

    def reproduce(study: Study, folder: Path, **_: object) -> None:
        (folder / "results.json").write_text(json.dumps([shown, other]))
        (folder / "explanations.json").write_text(json.dumps([{"statement": study.id}]))

    monkeypatch.setattr(bbn8333, "EXPERIMENTS", ("sim3",))
    monkeypatch.setattr(compare, "RESULTS", tmp_path)
    monkeypatch.setattr(compare, "reproduce", reproduce)
    compare.keep_publication("bbn8333", threads=1)
    kept = {file.name: json.loads(file.read_text()) for file in tmp_path.iterdir()}
    assert kept.pop("bbn8333-sim3.json") == [shown]
    assert kept.pop("bbn8333-sim3-explanations.json") == [{"statement": "sim3"}]
    (about,) = kept.pop("bbn8333-about.json")["rows"]
    assert (about["name"], kept) == ("sim3", {})
    assert "Seconds of one core: sim3 0 s." in tables.spent({"rows": [about]})


def test_an_experiment_that_there_is_not_is_answered_by_one_that_there_is() -> None:
    with pytest.raises(UserError, match=r"koutsianas2007/fig4\.3"):
        publications.find("koutsianas2007/fig4.33")
