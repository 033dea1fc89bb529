"""The comparison with ns-2, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ratios import AGREES, DIFFERS, UNDECIDED

Row = Mapping[str, Any]

RECOVERIES = {"reno": "Reno", "newreno": "NewReno", "sack": "SACK"}


def summary(result: Row) -> str:
    """How many cells agree."""
    rows = result["rows"]
    lines = [f"Of {len(rows)} cells, beside {result['peer']}:", ""]
    lines += ["| | agree | undecided | differ |", "| --- | ---: | ---: | ---: |"]
    for what, words in (
        ("goodput", "goodput, within 3 %"),
        ("timeouts", "timeouts a run, within 10 % or one half"),
        ("retransmitted", "retransmissions a run, within 10 % or one half"),
    ):
        lines.append(f"| {words} | {_counted(row['verdict'][what] for row in rows)} |")
    for key, words in (
        ("transfers", "completion of transfers, within 3 %"),
        ("outages", "end of an outage, within 10 ms and with as many timeouts"),
        ("westwood", "Westwood+, goodput, within 3 %"),
    ):
        verdicts = (
            row["verdict"]["goodput"] if key == "westwood" else row["verdict"]
            for row in result[key]
            if row.get("congestion", "westwood+") == "westwood+"
        )
        lines.append(f"| {words} | {_counted(verdicts)} |")
    return "\n".join(lines)


def in_one_sentence(result: Row) -> str:
    """For the README."""
    found = Counter(row["verdict"]["goodput"] for row in result["rows"])
    return (
        f"Plain Reno, NewReno and SACK have the goodput of {result['peer']}, within 3 %, in"
        f" {found[AGREES]} of {len(result['rows'])} cells; {found[DIFFERS]} differ, and"
        f" {found[UNDECIDED]} are undecided."
    )


def shifts(result: Row) -> str:
    """What many cells say together."""
    lines = [
        "| recovery | hops | errors | paths | ours / each family's goodput | above all | below all "
        "| sign test | timeouts | retransmissions | |",
        "| --- | ---: | --- | ---: | --- | ---: | ---: | ---: | --- | --- | --- |",
    ]
    for row in result["shifts"]:
        ratios = ", ".join(f"{one['family']} {_ratio(one['ratio'])}" for one in row["families"])
        counts = (_beside(row[what]) for what in ("timeouts", "retransmitted"))
        lines.append(
            f"| {RECOVERIES[row['recovery']]} | {row['hops']} | {row['errors']} | {row['cells']} "
            f"| {ratios} | {row['above']} | {row['below']} | {row['sign_p']:.2g} "
            f"| {' | '.join(counts)} | {_verdict(row['verdict'])} |"
        )
    return "\n".join(lines)


def goodputs(result: Row) -> str:
    """Every cell: our goodput over that of each family."""
    return _by_recovery(
        result["rows"],
        lambda row: _marked(
            ", ".join(_ratio(family["ratio"]) for family in row["families"]),
            row["verdict"]["goodput"],
        ),
    )


def counts(result: Row) -> str:
    """Every cell with errors: timeouts and retransmissions a run, ours and of each family."""

    def words(row: Row) -> str:
        both = (
            _marked(_beside([row[what][0], *(one[what][0] for one in row["families"])]), verdict)
            for what in ("timeouts", "retransmitted")
            for verdict in [row["verdict"][what]]
        )
        return "; ".join(both)

    return _by_recovery([row for row in result["rows"] if row["bit_error_rate"]], words)


def _by_recovery(rows: Sequence[Row], words: Any) -> str:
    lines = [
        f"| path | bit errors | {' | '.join(RECOVERIES.values())} |",
        "| --- | --- | --- | --- | --- |",
    ]
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        cells.setdefault((_path(row), _errors(row)), {})[row["recovery"]] = words(row)
    for place, found in cells.items():
        lines.append(f"| {' | '.join([*place, *(found[name] for name in RECOVERIES)])} |")
    return "\n".join(lines)


def westwood(result: Row) -> str:
    """Westwood+ by both clocks, and AIMD beside the Linux code's Reno."""
    lines = [
        "| path | window | bit errors | Westwood+, exact clock | clock of 1 ms "
        "| AIMD beside its Reno |",
        "| --- | ---: | ---: | --- | --- | --- |",
    ]
    arms = [("westwood+", "exact"), ("westwood+", "ticks"), ("aimd", "ticks")]
    cells: dict[tuple[str, int, float], dict[tuple[str, str], str]] = {}
    for row in result["westwood"]:
        place = (_path(row), row["window"], row["bit_error_rate"])
        (family,) = row["families"]
        words = _marked(_ratio(family["ratio"]), row["verdict"]["goodput"])
        cells.setdefault(place, {})[row["congestion"], row["clock"]] = words
    for (path, window, errors), found in cells.items():
        lines.append(
            f"| {path} | {window} | {errors:g} | {' | '.join(found[arm] for arm in arms)} |"
        )
    return "\n".join(lines)


def causes(result: Row) -> str:
    """What moves the cells that differ."""
    lines = [
        "| path | bit errors | lasthop / ns-2 | ns-2's setting | lasthop / ns-2 with it |",
        f"|{' --- |' * 5}",
    ]
    for row in result["causes"]:
        usual, changed = (_ratio(family["ratio"]) for family in row["families"])
        lines.append(
            f"| {_path(row)} | {_errors(row)} | {usual} | `{row['also'].replace(':', ' ')}` "
            f"| {changed} |"
        )
    lines += [
        "",
        "| receive window | segments lost | retransmitted | reductions |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for row in result["rescues"]:
        words = (f"{row[what][0]:.1f}" for what in ("corrupted", "retransmissions", "reductions"))
        lines.append(f"| {row['window']} segments | {' | '.join(words)} |")
    return "\n".join(lines)


def moved(result: Row) -> str:
    """Westwood+ with one thing changed."""
    lines = [
        '| path | default | timeouts | `rto.restart = "advance"` | timeouts '
        "| receive window of 150 | timeouts |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    cells: dict[str, list[str]] = {}
    for row in result["moved"]:
        (family,) = row["families"]
        timeouts = _beside([row["timeouts"][0], family["timeouts"][0]])
        cells.setdefault(_path(row), []).append(f"{_ratio(family['ratio'])} | {timeouts}")
    lines += [f"| {path} | {' | '.join(words)} |" for path, words in cells.items()]
    return "\n".join(lines)


def transfers(result: Row) -> str:
    """Transfers over errors, and those without errors that do not agree."""
    lines = [
        "| segments | path | bit errors | recovery | ours, s | ns-2's families, s | ratio | |",
        "| ---: | --- | ---: | --- | ---: | --- | --- | --- |",
    ]
    for row in result["transfers"]:
        if row["bit_error_rate"] or row["verdict"] != AGREES:
            theirs = ", ".join(f"{one['completed_s'][0]:.4g}" for one in row["families"])
            lines.append(
                f"| {row['segments']} | {_path(row)} | {row['bit_error_rate']:g} "
                f"| {RECOVERIES[row['recovery']]} | {row['completed_s'][0]:.4g} | {theirs} "
                f"| {_ratio(row['beyond'])} | {_verdict(row['verdict'])} |"
            )
    return "\n".join(lines)


def _counted(verdicts: Iterable[str]) -> str:
    found = Counter(verdicts)
    return " | ".join(str(found[verdict]) for verdict in (AGREES, UNDECIDED, DIFFERS))


def _path(row: Row) -> str:
    hops = f", {row['hops']} hops" if row["hops"] > 1 else ""
    return f"{row['rate_bps'] / 1e6:g} Mb/s, {row['one_way_delay_s'] * 1e3:g} ms{hops}"


def _errors(row: Row) -> str:
    errors = row["bit_error_rate"]
    return f"{errors:g}, {row['errors']}" if errors else "none"


def _ratio(ends: Sequence[float]) -> str:
    value, low, high = ends
    return f"{value:.3f}" if low == high else f"{value:.3f} ± {(high - low) / 2:.3f}"


def _beside(values: Sequence[float]) -> str:
    ours, *theirs = (f"{value:.3g}" if value < 1000 else f"{value:.0f}" for value in values)
    return f"{ours} ({', '.join(theirs)})"


def _marked(words: str, verdict: str) -> str:
    return {AGREES: words, UNDECIDED: f"{words}?", DIFFERS: f"**{words}**"}[verdict]


def _verdict(verdict: str) -> str:
    return f"**{verdict}**" if verdict == DIFFERS else verdict
