"""bbn8333's open questions: what must hold of each, with few seeds."""

from __future__ import annotations

import importlib
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import studies
import tables
from fixtures import Command, Off, Written
from selection import some

from lasthop import lab, publications
from lasthop.publications.bbn8333.beyond import (
    attacks,
    ceten,
    channels,
    coding,
    fade,
    false_echoes,
    false_fields,
    mistake,
    per_packet_code,
    tunnel,
)
from lasthop.publications.bbn8333.beyond.book import TABLES
from lasthop.publications.study import book
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Study
from lasthop.publications.study.verdict import Verdict
from lasthop.scenario import Scenario

ATTACKS = ("flood", "forged", "false-echoes", "false-fields")
NAMES = (
    *("burst", "fade", "short", "web", "setup", "mistake", "alpha", "forms", "fairness", "ecn"),
    *(*ATTACKS, "coding", "per-packet-code", "tunnel"),
)


def _question(name: str) -> Study:
    return studies.load(f"bbn8333/beyond/{name}")


def _short(cell: Cell) -> Cell:
    """The cell with shorter runs, if they are long."""
    many = ("/coding", "/per-packet-code", "/forms", "/false-fields")
    duration = "30 s" if cell.scenario.endswith(many) else ""
    # Millions of packets a run: a tenth of the time has as many as the next lower rate.
    if cell.case.get("rate_per_s") == 100_000:
        duration = "3 s"
    return replace(cell, settings={**cell.settings, "duration": duration}) if duration else cell


def _some(name: str) -> Study:
    question = _question(name)
    return replace(question, cells=lambda: [*map(_short, question.cells())])


@pytest.fixture(scope="module")
def runs() -> Mapping[str, Runs]:
    """Quick runs of all."""
    return {name: _some(name).measure(quick=True) for name in NAMES}


def _goodput(runs: Runs, case: Case) -> float:
    values = runs.values(case, "goodput_bps")
    return sum(values) / len(values)


# --- What all have in common ---


def test_the_publication_keeps_its_simulations_and_what_goes_beyond_apart() -> None:
    ids = [of.id for of in publications.find("bbn8333/beyond")]
    assert ids == [f"bbn8333/beyond/{name}" for name in NAMES]
    assert [of.id for of in publications.find("bbn8333/beyond/fade")] == ["bbn8333/beyond/fade"]
    assert not any("beyond" in of.id for of in publications.find("bbn8333"))


@pytest.mark.parametrize("name", NAMES)
def test_a_question_becomes_rows_a_picture_and_a_page(
    name: str, runs: Mapping[str, Runs], written: Written
) -> None:
    question = _question(name)
    folder, answers = written(question, runs[name])
    rows, html = studies.reported(f"bbn8333/beyond/{name}", folder, answers)
    found = [row for row in rows if row["metric"] == "finding"]
    assert all(row["why"] and row["agrees"] in (True, False, None) for row in found)
    for row in rows:
        if row["measured"] is not None:
            low, high = row["ci95"]
            assert low <= row["measured"] <= high
            assert math.isfinite(low + high)
    page = re.sub(r"\s+", " ", html.replace("&#39;", "'"))
    assert page.count("<svg") == 1
    for answer in answers:
        assert answer.why in page
    assert page.count("<tr><td>") == len(runs[name].found)
    assert ("This was a quick run" in page) == (name not in ("short", "setup"))


@pytest.mark.soak
@pytest.mark.parametrize("name", ["coding", "per-packet-code", "forms", "false-fields"])
def test_a_question_in_whole_runs_is_as_complete(name: str, written: Written) -> None:
    runs = {name: _question(name).measure(quick=True)}
    test_a_question_becomes_rows_a_picture_and_a_page(name, runs, written)


#: What a case is without what a claim is about, by question.
WITHOUT: Mapping[str, Mapping[str, Callable[[Case], Case]]] = {
    "short": {"eten": lambda case: case.but(eten="none")},
    "setup": {"eten": lambda case: case.but(eten="none", notice_bytes=0)},
    "mistake": {"mistakes": lambda case: case.but(mistakes=0.0)},
    "coding": {"coding": coding.uncoded},
    "per-packet-code": {"coding": per_packet_code.uncoded},
    "tunnel": {"notices": tunnel.alone},
    "false-echoes": {
        "lying": false_echoes.honest,
        "defences": lambda case: case.but(defences="none"),
    },
    "false-fields": {
        "lying": false_fields.plain,
        "bound": lambda case: case.but(bound=1.0) if case["eten"] == "cumulative" else case,
    },
    **{
        name: {
            "forging": attacks.inert,
            "defences": lambda case: case.but(defences="none"),
        }
        for name in ("flood", "forged")
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_no_effect_that_is_claimed_holds_without_what_it_is_claimed_of(
    name: str, runs: Mapping[str, Runs], off: Off
) -> None:
    question, pool = _question(name), runs[name]
    claims = [answer for answer in question.judge(pool) if answer.verdict is not None]
    assert {claim.effect_of for claim in claims} <= {"none", *WITHOUT.get(name, ())}
    for mechanism, plain in WITHOUT.get(name, {}).items():
        without = question.judge(off(pool, pool, plain, 20, 0.02))
        found = [answer for answer in without if answer.effect_of == mechanism]
        assert found
        assert [answer.claim for answer in found if answer.verdict is Verdict.HOLDS] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_scenario_file_says_what_it_asks_and_can_be_swept(name: str) -> None:
    scenario = Scenario.load(f"bbn8333/beyond/{name}")
    assert scenario.source.startswith("# bbn8333 §")
    assert scenario.outline().runs > 1
    links = tomllib.loads(scenario.source)["links"]
    assert all({"rate", "delay"} <= set(link) for link in links)


@pytest.mark.parametrize("name", NAMES)
def test_the_book_has_a_table_of_it(name: str, runs: Mapping[str, Runs], written: Written) -> None:
    in_book = [of for of, _ in tables.of_publications()]
    folder, _ = written(_question(name), runs[name])
    kept = book.kept(TABLES[name], folder)
    for what, shown in TABLES[name].all.items():
        table = shown.markdown(kept).splitlines()
        assert all(line.count("|") == table[0].count("|") for line in table)
        assert len(table) > 4
        assert f"bbn8333-beyond-{name}-{what}" in in_book
        # Nothing is empty but quantiles not reached, weights that a strategy does not take, and
        # what is hidden where there is no tunnel.
        allowed = {"setup": 3, "alpha": 12, "tunnel": 2}.get(name, 0)
        assert sum(line.count("|  |") for line in table) <= allowed


def test_a_quick_run_is_one_command(lasthop: Command, tmp_path: Path) -> None:
    done = lasthop("reproduce", "bbn8333/beyond/setup", "--seeds", "4")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "reports" / "bbn8333" / "beyond" / "setup"
    assert {file.name for file in folder.iterdir()} == {"results.json", "report.html"}


# --- What must come of them ---


@pytest.mark.parametrize("name", ["burst", "fade"])
def test_other_patterns_corrupt_as_much_on_average(name: str) -> None:
    module = importlib.import_module(f"lasthop.publications.bbn8333.beyond.{name}")
    expected = channels.packet_loss(channels.HIGH)
    wanted = {"recovery": "sack", "eten": "none", "bit_error_rate": channels.HIGH}
    cells = [
        cell
        for cell in module.cells()
        if {**wanted, "one_way_delay_s": channels.SHORT}.items() <= cell.case.items()
    ]
    assert len(cells) == 5
    for cell in cells:
        # UDP does not mind: it samples the channel evenly.
        udp = {"rate": "1 Mbit/s", "packet": "576 B"}
        flow = {"name": "probe", "from": "source", "to": "sink", "traffic": {"udp": udp}}
        settings = {k: v for k, v in cell.settings.items() if not k.startswith("flows")}
        scenario = Cell(cell.case, cell.scenario, {**settings, "flows": [flow]}, 1, 1, cell.along)
        rows = lab.sweep(scenario.build(10)).rows
        lost = sum(rows["corrupted"]) / sum(rows["datagrams_sent"])
        assert lost == pytest.approx(expected, rel=0.15), cell.case


def test_notices_help_with_single_errors_and_with_bursts(runs: Mapping[str, Runs]) -> None:
    found = runs["burst"]
    for case in some(found, eten="backward", bit_error_rate=channels.HIGH, recovery="sack"):
        assert _goodput(found, case) > 1.5 * _goodput(found, case.but(eten="none")), case


def test_in_long_fades_there_is_little_to_gain(runs: Mapping[str, Runs]) -> None:
    found = runs["fade"]
    where = {"recovery": "sack", "one_way_delay_s": channels.LONG, "bit_error_rate": channels.HIGH}

    def gain(length: float) -> float:
        case = found.case(eten="backward", fade_s=length, **where)
        return _goodput(found, case) / _goodput(found, case.but(eten="none"))

    assert gain(fade.ALWAYS) > 2.5
    assert gain(fade.FADES[-1]) < 1.3


def test_the_larger_the_transfer_the_larger_the_gain(runs: Mapping[str, Runs]) -> None:
    found = runs["short"]
    ratios = []
    for size in (5_000, 1_000_000):
        case = found.case(
            eten="backward", profile="ns2-2001", bit_error_rate=1.56e-5, size_bytes=size
        )
        ratio = found.quantile_ratio(case, case.but(eten="none"), "transfer_s", 0.5)
        assert ratio is not None
        ratios.append(ratio.value)
    assert ratios[1] < 0.5 < ratios[0] <= 1.001


def test_pages_and_objects_come_sooner(runs: Mapping[str, Runs]) -> None:
    found = runs["web"]
    for case in some(found, eten="oracle", bit_error_rate=1.56e-5):
        for metric in ("page_p95_s", "object_p95_s"):
            ratio = found.ratio(case, case.but(eten="none"), metric)
            assert ratio is not None
            assert ratio.value < 0.6, case
        assert min(found.values(case, "objects_ended")) > 0.9


def test_a_notice_about_a_syn_spares_the_back_off(runs: Mapping[str, Runs]) -> None:
    found = runs["setup"]
    where = {"errors": "forward", "profile": "ns2-2001", "bit_error_rate": 4e-3}
    alone = found.case(eten="none", **where)
    notified = found.case(eten="oracle", **where)
    assert found.share(alone, "first_byte_s").value > 0.15
    assert found.share(notified, "first_byte_s").value == 0.0
    assert found.quantile(notified, "first_byte_s", 0.5).value < 10


def test_who_overlooks_every_drop_takes_the_link_and_wastes_it(runs: Mapping[str, Runs]) -> None:
    found = runs["mistake"]

    def value(metric: str, **where: object) -> float:
        (only,) = found.values(found.case(**where), metric)
        return only

    one = {"mistaken": mistake.ONE, "competitors": 4}
    assert value("fairness", mistakes=0.0, **one) > 0.95
    assert value("fairness", mistakes=0.1, **one) > 0.9
    assert value("share_of_fair", mistakes=1.0, **one) > 3
    every = {"mistaken": mistake.ALL}
    for metric in ("all_goodput_bps", "bystander_goodput_bps"):
        assert value(metric, mistakes=1.0, **every) < 0.6 * value(metric, mistakes=0.0, **every)


def test_notices_come_out_of_a_tunnel_if_its_ingress_resolves_them(
    runs: Mapping[str, Runs],
) -> None:
    found = runs["tunnel"]
    for case in some(found, notices=tunnel.RESOLVE, bit_error_rate=tunnel.HIGH):
        direct = case.but(notices=tunnel.READABLE)
        if case["way_back"] == tunnel.SAME:
            # The ingress is on their way.
            assert found.found[case] == found.found[direct], case
            assert _goodput(found, case) > 2 * _goodput(found, tunnel.alone(case)), case
        else:
            assert _goodput(found, tunnel.alone(case)) < _goodput(found, case), case
            assert _goodput(found, case) < _goodput(found, direct), case


def test_corruption_inside_a_tunnel_is_not_reported(runs: Mapping[str, Runs]) -> None:
    found = runs["tunnel"]
    where = {"bit_error_rate": tunnel.HIGH, "errors": tunnel.EVERYWHERE, "one_way_delay_s": 0.01}
    lost = [found.case(tunnel_hops=hops, notices=tunnel.LOST, **where) for hops in (1, 2, 3)]
    notices = [sum(found.values(case, "notices")) for case in lost]
    assert notices[0] > notices[1] > notices[2] == 0
    for case in (lost[2], lost[2].but(notices=tunnel.HIDDEN)):
        goodputs = found.values(tunnel.alone(case), "goodput_bps")
        assert found.values(case, "goodput_bps") == goodputs
    copied = lost[2].but(notices=tunnel.COPIED)
    assert _goodput(found, copied) > 1.2 * _goodput(found, tunnel.alone(copied))


# --- Cumulative ETEN ---


@pytest.mark.parametrize("name", ["alpha", "fairness", "ecn"])
def test_every_strategy_is_beside_plain_tcp_with_the_same_errors(
    name: str, runs: Mapping[str, Runs]
) -> None:
    found = runs[name]
    rates = {case["bit_error_rate"] for case in some(found, eten="none")}
    for strategy in ceten.STRATEGIES:
        cases = some(found, strategy=strategy)
        assert {case["bit_error_rate"] for case in cases} == rates
        assert all(min(found.values(case, "goodput_bps")) > 0 for case in cases)


def test_alone_and_notified_of_corruption_goodput_is_no_less(runs: Mapping[str, Runs]) -> None:
    found = runs["alpha"]
    where = {"competitors": 0, "bit_error_rate": ceten.HIGH}
    plain = found.case(eten="none", **where)
    for case in some(found, strategy="loss-ratio", **where):
        assert _goodput(found, case) > 0.9 * _goodput(found, plain), case


def test_connections_that_are_alike_share_alike(runs: Mapping[str, Runs]) -> None:
    found = runs["fairness"]
    for case in some(found, eten="none", bit_error_rate=0.0):
        assert min(found.values(case, "fairness")) > 0.9


def test_marks_take_the_place_of_drops(runs: Mapping[str, Runs]) -> None:
    found = runs["ecn"]
    for case in some(found, eten="none", bit_error_rate=0.0, ecn_on=True):
        (marked,) = found.values(case, "dropped_share")
        (dropped,) = found.values(case.but(ecn_on=False), "dropped_share")
        assert marked < 0.5 * dropped, case


# --- Attackers and misbehaving receivers ---


@pytest.mark.parametrize("name", ["flood", "forged"])
def test_without_a_defence_forged_notices_make_the_victim_send(
    name: str, runs: Mapping[str, Runs]
) -> None:
    found = runs[name]
    strongest = {"rate_per_s": 10_000} if name == "flood" else {"every": 1}
    for case in some(found, defences="none", sent="notices", **strongest):
        if case["bursts_bps"]:
            (sent,) = found.values(case, "segments")
            (plain,) = found.values(attacks.plain(case), "segments")
            assert sent > 10 * plain, case


def test_with_nonces_a_flood_changes_no_packet(runs: Mapping[str, Runs]) -> None:
    found = runs["flood"]
    forged = found.cases(defences=("nonce", "all"), sent="notices")
    assert {case["rate_per_s"] for case in forged} == {10, 100, 1000, 10_000, 100_000}
    for case in forged:
        assert found.found[case] == found.found[attacks.inert(case)], case


def test_a_limit_is_never_passed(runs: Mapping[str, Runs]) -> None:
    found = runs["forged"]
    # 30 s, in round trips of no less than 44 ms.
    for limit in (1, 10, 100):
        for case in some(found, defences=f"limit {limit}", sent="notices"):
            (believed,) = found.values(case, "believed")
            assert believed <= limit * (30 / 0.044 + 1), case


def test_a_liar_gains_without_nonces_and_nothing_with_a_bound_of_a_half(
    runs: Mapping[str, Runs],
) -> None:
    found = runs["false-echoes"]
    lies = found.case(receiver="misbehaving", defences="none", bursts_bps=0)
    assert _goodput(found, lies) > 1.4 * _goodput(found, lies.but(receiver="honest"))
    nonces = lies.but(defences="nonce")
    assert _goodput(found, nonces) < 1.05 * _goodput(found, nonces.but(receiver="honest"))
    found = runs["false-fields"]
    for case in some(found, eten="cumulative", bound=0.5):
        assert found.found[case] == found.found[false_fields.plain(case)], case


def test_a_code_that_follows_corruption_pays_where_there_is_much(
    runs: Mapping[str, Runs],
) -> None:
    found = runs["coding"]
    where = {"recovery": "sack", "competitors": 0, "one_way_delay_s": 0.09, "hops": 3}

    def payload(code: str, loss: float) -> float:
        (value,) = found.values(found.case(code=code, loss=loss, **where), "payload_bps")
        return value

    assert payload("CETEN, following", 0.01) > 1.5 * payload("CETEN alone", 0.01)
    assert payload("CETEN, following", 0.0) == payload("CETEN alone", 0.0)
    assert payload("fixed, none signalled", 0.0) < 0.95 * payload("off", 0.0)


def test_a_code_within_packets_is_worth_its_bytes_where_bits_are_wrong(
    runs: Mapping[str, Runs],
) -> None:
    found = runs["per-packet-code"]
    bits = {"channel": per_packet_code.BITS, "hops": 3}

    def payload(code: str, bit: float, eten: str = "none", **where: object) -> float:
        case = found.case(**{**bits, "bit_error_rate": bit, "eten": eten, "code": code, **where})
        values = found.values(case, "payload_bps")
        return sum(values) / len(values)

    assert payload("4", 1.56e-5) > 20 * payload("off", 1.56e-5)
    assert payload("following", 1.56e-5, "cumulative") > 0.9 * payload("4", 1.56e-5)
    assert payload("8", 0.0) / payload("off", 0.0) == pytest.approx(0.968, abs=0.002)
    faded: Mapping[str, Any] = {"channel": per_packet_code.FADES, "hops": 1}
    assert payload("8", 1.56e-6, **faded) < payload("off", 1.56e-6, **faded)


def test_packets_are_damaged_beyond_their_codes_as_often_as_is_said(
    runs: Mapping[str, Runs],
) -> None:
    found = runs["per-packet-code"]
    # Backward ETEN keeps the sender sending.
    case = found.case(
        channel=per_packet_code.BITS, hops=1, bit_error_rate=1.56e-4, eten="backward", code="2"
    )
    corrected, corrupted = (sum(found.values(case, name)) for name in ("corrected", "corrupted"))
    any_, lost = (per_packet_code.damaged(1.56e-4, corrects) for corrects in (0, 2))
    assert corrupted / (corrected + corrupted) == pytest.approx(lost / any_, rel=0.1)
    cells = [
        cell for cell in per_packet_code.cells() if cell.case["channel"] == per_packet_code.FADES
    ]
    for cell in cells:
        fades = cell.settings["links.2.forward.errors"]["fades"]
        period = float(fades["every"].removesuffix(" ms")) / 1e3
        share = per_packet_code.damaged(cell.case["bit_error_rate"])
        assert 0.05 / period == pytest.approx(share, rel=1e-3)
