"""Base stations that lie, and others who forge the option (beyond obanaik2003)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import lab, pictures
from lasthop.publications.obanaik2003.spep import bed
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Measure, Study, mean
from lasthop.publications.study.verdict import Check, between, every
from lasthop.publications.study.words import NEGLIGIBLE, SMALL, phrase
from lasthop.scenario import Scenario
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SCENARIO = "obanaik2003/spep-attacks"
OWN, NEIGHBOUR = "own", "neighbour"
#: On the wireless hop: none, and one in so many bytes.
NO_ERRORS, ERRORS = 0, 64 * 1024
PLAIN, TRUE, EVERYTHING, NOTHING = "NewReno", "true", "marks all", "marks none"
#: With SACK and every hole named.
TRUE_HOLES, EVERYTHING_HOLES = "true, every hole", "marks all, every hole"
BEFORE, BEHIND = "forger before it", "forger behind it"
BLIND, RIGHT, LOAD = "guesses, 1000/s", "one right guess", "datagrams, 1000/s"

#: Guesses a second, and the bytes of one on its way: a segment without data.
GUESSES, GUESS = 1000, 60

_HOLES = {"flows.0.tcp.recovery": "sack", "flows.0.tcp.mechanisms": [bed.EVERY_HOLE]}
_FORGES = {"box": "spep", "claims": "everything"}


def _station(claims: str) -> dict[str, Any]:
    return {"nodes.station.boxes": [{"box": "spep", "hop": "behind", "claims": claims}]}


def _blind(rate: int, aim: str, **more: Any) -> dict[str, Any]:
    attack = {"at": "mallory", "flow": OWN, "kind": "esp-packets", "knowledge": "blind"}
    return {"attacks": [{**attack, "rate": rate, "aim": aim, **more}]}


def _load() -> dict[str, Any]:
    """As many datagrams as guesses, of the same size."""
    flows = tomllib.loads(Scenario.load(SCENARIO).source)["flows"]
    udp = {"rate": f"{GUESSES * GUESS * 8} bit/s", "packet": GUESS}
    load = {"name": "load", "from": "mallory", "to": "mobile", "ip": 6, "traffic": {"udp": udp}}
    return {"flows": [*flows, load]}


#: The settings of each attacker.
ATTACKERS: Mapping[str, Mapping[str, Any]] = {
    PLAIN: {"flows.0.tcp.mechanisms": []},
    TRUE: {},
    EVERYTHING: _station("everything"),
    NOTHING: _station("nothing"),
    TRUE_HOLES: _HOLES,
    EVERYTHING_HOLES: {**_station("everything"), **_HOLES},
    BEFORE: {"nodes.router.boxes": [{**_FORGES, "hop": "station"}]},
    BEHIND: {"nodes.behind.boxes": [{**_FORGES, "hop": "mobile"}]},
    BLIND: _blind(GUESSES, "anywhere"),
    LOAD: _load(),
    RIGHT: _blind(1, "window", start="1 s", stop="2 s"),
}


def cells() -> list[Cell]:
    """Every attacker, with errors on the hop and without."""
    found = []
    for errors in (NO_ERRORS, ERRORS):
        clean: dict[str, Any] = {} if errors else {"links.4.forward": {}}
        for attacker, settings in ATTACKERS.items():
            case = Case(attacker=attacker, error_interval_bytes=errors)
            found.append(Cell(case, SCENARIO, {**settings, **clean}, bed.SEEDS, 1))
    return found


def observe(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """What both flows get, and what the bottleneck's queue drops."""
    result = lab.run(scenario, seed=seed)
    rows = {row["flow"]: row for row in result.rows.iter_rows(named=True)}
    bottleneck = result.links.filter(result.links["link"] == "router->station")
    dropped, passed = bottleneck["dropped"][0], bottleneck["packets"][0]
    own, other = rows[OWN], rows[NEIGHBOUR]
    return {
        "payload_bps": own["payload_bps"],
        "neighbour_bps": other["payload_bps"],
        "share": own["payload_bps"] / (own["payload_bps"] + other["payload_bps"]),
        "drop_share": dropped / (dropped + passed),
        "reductions": float(own["reductions"]),
        "timeouts": float(own["timeouts"]),
    }


def _over(runs: Runs, attacker: str, to: str, metric: str, errors: int) -> Estimate | None:
    cases = [runs.case(attacker=name, error_interval_bytes=errors) for name in (attacker, to)]
    return runs.ratio(cases[0], cases[1], metric)


def _equal(runs: Runs, attacker: str, to: str) -> bool:
    """Whether every run is as with another attacker."""
    return all(
        runs.found[case][metric] == runs.found[case.but(attacker=to)][metric]
        for case in runs.cases(attacker=attacker)
        for metric in ("payload_bps", "neighbour_bps")
    )


def _errors(errors: int) -> str:
    return "with errors" if errors else "without errors"


def _both(runs: Runs, attacker: str, to: str) -> str:
    """Of both flows, over those with another attacker."""
    return "; ".join(
        f"{_errors(errors)} {phrase(_over(runs, attacker, to, 'payload_bps', errors))} and"
        f" {phrase(_over(runs, attacker, to, 'neighbour_bps', errors))}"
        for errors in (NO_ERRORS, ERRORS)
    )


def _lies(runs: Runs) -> Answer:
    case = runs.case(attacker=EVERYTHING, error_interval_bytes=NO_ERRORS)
    drops = " and ".join(
        f"{100 * value.value:.2g} %"
        for name in (TRUE, EVERYTHING)
        for value in (runs.mean(case.but(attacker=name), "drop_share"),)
        if value is not None
    )
    shares = [runs.mean(of, "share") for of in runs.cases(attacker=EVERYTHING)]
    return Answer(
        "What does a base station gain for a flow that marks everything as received?",
        "beyond",
        None,
        "Payload of the flow and of its neighbour, over those with a true base station:"
        f" {_both(runs, EVERYTHING, TRUE)}. Of the bottleneck's payload it has"
        f" {phrase(shares[0])} and {phrase(shares[1])}. Without errors the queue drops {drops} of"
        " all packets. One bit names one hole in a round trip, which bounds the gain; with SACK"
        f" and every hole named: {_both(runs, EVERYTHING_HOLES, TRUE_HOLES)}.",
        case,
        _over(runs, EVERYTHING, TRUE, "neighbour_bps", NO_ERRORS),
    )


def _silent(runs: Runs) -> Answer:
    values = [
        _over(runs, NOTHING, PLAIN, metric, errors)
        for errors in (NO_ERRORS, ERRORS)
        for metric in ("payload_bps", "neighbour_bps")
    ]
    exact = _equal(runs, NOTHING, PLAIN)
    claim = every([Check(value, between(1 - SMALL, 1 + SMALL), exact=exact) for value in values])
    return Answer(
        "A base station that marks nothing leaves the flow as plain TCP.",
        "beyond",
        claim.verdict,
        "Payload of the flow and of its neighbour, over those of NewReno:"
        f" {_both(runs, NOTHING, PLAIN)}. {claim.tally}",
        runs.case(attacker=NOTHING, error_interval_bytes=ERRORS),
        values[2],
        effect_of="none",
        criterion=claim.criterion,
    )


def _before(runs: Runs) -> Answer:
    cases = runs.cases(attacker=BEFORE)
    equal = _equal(runs, BEFORE, TRUE)
    values = [
        Check(
            runs.ratio(case, case.but(attacker=TRUE), "payload_bps"),
            between(1 - NEGLIGIBLE, 1 + NEGLIGIBLE),
            exact=equal,
        )
        for case in cases
    ]
    claim = every(values)
    return Answer(
        "Who forges the option before the base station changes nothing.",
        "beyond",
        claim.verdict,
        "The base station overwrites it: "
        + ("every run is as without. " if equal else f"{_both(runs, BEFORE, TRUE)}. ")
        + f"Behind the base station a forger does as one that lies: {_both(runs, BEHIND, TRUE)}.",
        cases[0],
        _over(runs, BEHIND, TRUE, "neighbour_bps", NO_ERRORS),
        effect_of="station",
        criterion=claim.criterion,
    )


def _guesses(runs: Runs) -> Answer:
    case = runs.case(attacker=BLIND, error_interval_bytes=ERRORS)
    value = runs.ratio(case, case.but(attacker=LOAD), "payload_bps")
    days = 2**33 / GUESSES / 86_400
    return Answer(
        "What can one do that is off the path and guesses the SPI and a number?",
        "beyond",
        None,
        f"Payload of the flow, over that with as many datagrams: {phrase(value)}. One guess in 2^32"
        " names the association, and half of those a later number: at this rate one in"
        f" {days:.0f} days.",
        case,
        value,
    )


def _right(runs: Runs) -> Answer:
    value = _over(runs, RIGHT, PLAIN, "payload_bps", ERRORS)
    claim = every([Check(value, between(1 - SMALL, 1 + SMALL))])
    return Answer(
        "One right guess leaves the flow as plain TCP, where ESP has no authentication.",
        "beyond",
        claim.verdict,
        "The number that is expected next is then far ahead, and what follows seems late. With"
        f" errors, payload of the flow and of its neighbour over those of NewReno: {phrase(value)}"
        f" and {phrase(_over(runs, RIGHT, PLAIN, 'neighbour_bps', ERRORS))}. {claim.tally} Here"
        " numbers are completed to 64 bits without being verified; with numbers of 32 bits all"
        " that follows would be refused as replays. With authentication, which ESP should have,"
        " the guess is refused.",
        runs.case(attacker=RIGHT, error_interval_bytes=ERRORS),
        value,
        effect_of="none",
        criterion=claim.criterion,
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """What each can do."""
    return [_lies(runs), _silent(runs), _before(runs), _guesses(runs), _right(runs)]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    value = _over(runs, EVERYTHING, TRUE, "neighbour_bps", NO_ERRORS)
    return (
        "A base station that marks everything as received leaves an honest neighbour"
        f" {phrase(value)} of its throughput."
    )


def figure(runs: Runs) -> Figure:
    """What both flows get."""
    with pictures.figure(11, 4.2) as drawn:
        axes = drawn.subplots(1, 2, sharey=True)
        for ax, errors in zip(axes, (NO_ERRORS, ERRORS), strict=True):
            for shift, metric, colour, label in (
                (-0.19, "payload_bps", pictures.BLUE, "the flow with SPEP"),
                (0.19, "neighbour_bps", pictures.GREY, "its neighbour"),
            ):
                cases = runs.cases(error_interval_bytes=errors)
                means = [runs.mean(case, metric) for case in cases]
                values = [value for value in means if value is not None]
                ax.barh(
                    [place + shift for place in range(len(values))],
                    [value.value / 1e6 for value in values],
                    xerr=[
                        [(value.value - value.lo) / 1e6 for value in values],
                        [(value.hi - value.value) / 1e6 for value in values],
                    ],
                    height=0.36,
                    color=colour,
                    ecolor=pictures.BLACK,
                    label=label,
                )
                ax.set_yticks(range(len(cases)), [case["attacker"] for case in cases])
            ax.set_xlim(0, None)
            ax.set_xlabel("payload, Mb/s")
            ax.set_title(_errors(errors).capitalize())
        axes[0].invert_yaxis()
        handles, labels = axes[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper right", ncols=2)
    return drawn


def _gain(runs: Runs, case: Case) -> Estimate | None:
    true = case.but(attacker=TRUE)
    return None if case == true else runs.ratio(case, true, "payload_bps")


STUDY = Study(
    publication=bed.PUBLICATION,
    experiment="spep/attacks",
    title="Who lies about what was received",
    asks="The option is not authenticated. What can a base station do that lies, and what others"
    " who forge it?",
    where="beyond",
    method=(
        "A download with SPEP and a neighbour without share a bottleneck of 5 Mb/s, with a round"
        " trip of 44 ms, up to 10 ms of jitter and a queue of 20 packets; the wireless hop behind"
        " it has 10 Mb/s, and loses nothing, or one packet in 64 KiB. NewReno, or SACK with every"
        " hole named; 100 s, profile ns2-2007.",
        "True: the base station marks what it has sent. A forger before it, or behind it, claims in"
        " each packet that everything was received, as one does that marks all.",
        "Off the path: packets in the name of the fixed host. A thousand guesses a second of the"
        " SPI and the number are uniform; one right guess, after 1 s, names the association and a"
        " later number. The lab's ESP takes every packet of an association: it has no"
        " authentication.",
    ),
    cells=cells,
    observe=observe,
    measures=(
        mean("payload_bps", "bit/s", "payload, kb/s", 1e3),
        Measure("ratio", "1", "over a true station", _gain),
        mean("neighbour_bps", "bit/s", "neighbour, kb/s", 1e3),
        mean("share", "1", "share of both, %", 0.01),
        mean("drop_share", "1", "dropped, %", 0.01),
        mean("reductions", "1", "reductions"),
        mean("timeouts", "1", "timeouts"),
    ),
    figures=(Drawn("The throughput of both, with 95 % intervals.", figure),),
    answers=answers,
    keys={"attacker": "attacker", "error_interval_bytes": "errors"},
    words={"error_interval_bytes": lambda size: bed.interval_words(size) if size else "none"},
    outcome=outcome,
)
