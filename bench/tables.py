"""Markdown from bench/results: for the book, for the terminal, and for the README."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import agreement_tables
import bbr
import beside
import cluster
import cost
import fidelity
import field_tables
import ishac_calibration
import kernel
import marker
import obanaik_calibration
import on_testbed
import packetdrill_tables
import rack
import readme
import relay
import satellite
import short_messages
import speed
import spoofing
import tabular
import worlds
import yavatkar_calibration
from record import RESULTS

from lasthop import publications
from lasthop.publications.study import book

Result = Any


def all_tables() -> Iterator[tuple[str, str]]:
    """Name and Markdown of every table."""
    for name, (file, table) in TABLES.items():
        path = RESULTS / file
        measured = path.exists()
        yield name, table(json.loads(path.read_text())) if measured else "*Not measured yet.*"
    yield from of_publications()
    yield "readme", readme.shown()


TABLES: Mapping[str, tuple[str, Callable[[Result], str]]] = {
    "speed": ("speed.json", speed.table),
    "cost": ("cost.json", cost.table),
    "agreement-summary": ("agreement.json", agreement_tables.summary),
    "agreement-shifts": ("agreement.json", agreement_tables.shifts),
    "agreement-goodputs": ("agreement.json", agreement_tables.goodputs),
    "agreement-counts": ("agreement.json", agreement_tables.counts),
    "agreement-westwood": ("agreement.json", agreement_tables.westwood),
    "agreement-transfers": ("agreement.json", agreement_tables.transfers),
    "agreement-causes": ("agreement.json", agreement_tables.causes),
    "agreement-moved": ("agreement.json", agreement_tables.moved),
    "agreement-about": ("agreement.json", tabular.circumstances),
    "cluster": ("cluster.json", cluster.table),
    "fidelity": ("fidelity.json", fidelity.table),
    "interop": ("interop.json", kernel.interop),
    "throughput": ("throughput.json", kernel.throughput),
    "relay": ("relay.json", relay.table),
    "marker": ("marker.json", marker.table),
    "short-messages": (short_messages.FILE, short_messages.table),
    "field": ("field.json", field_tables.hops),
    "field-long": ("field-long.json", field_tables.long),
    "field-sizes": ("field-sizes.json", field_tables.sizes),
    "field-machine": ("field-machine.json", field_tables.machine),
    "field-outage": ("field-outage.json", field_tables.outage),
    "field-pair": ("field-pair.json", field_tables.pair),
    "field-roaming": ("field-roaming.json", field_tables.roaming),
    "field-notify": ("field-notify.json", field_tables.notify),
    "field-chaos": ("field-chaos.json", field_tables.chaos),
    "field-attack": ("field-attack.json", field_tables.attack),
    "field-policies": ("field-policies.json", field_tables.policies),
    "spoofing": ("spoofing.json", spoofing.table),
    "worlds": ("worlds.json", worlds.table),
    **{name: ("satellite.json", table) for name, table in satellite.TABLES.items()},
    "beside": ("beside.json", beside.table),
    "rack": ("rack.json", rack.table),
    "bbr-losses": (bbr.FILE.name, bbr.losses),
    "bbr-shares": (bbr.FILE.name, bbr.shares),
    "bbr": (bbr.FILE.name, bbr.others),
    "packetdrill": ("packetdrill.json", packetdrill_tables.counts),
    "packetdrill-scripts": ("packetdrill.json", packetdrill_tables.scripts),
    "packetdrill-beyond": ("packetdrill-beyond.json", packetdrill_tables.counts),
    "packetdrill-beyond-scripts": ("packetdrill-beyond.json", packetdrill_tables.scripts),
    **{
        f"obanaik2003-fairness-{what}": ("obanaik2003-calibration.json", table)
        for what, table in obanaik_calibration.TABLES.items()
    },
    **{
        f"ishac2001-{what}": ("ishac2001-calibration.json", table)
        for what, table in ishac_calibration.TABLES.items()
    },
    **{
        f"yavatkar1994-{what}": ("yavatkar1994-calibration.json", table)
        for what, table in yavatkar_calibration.TABLES.items()
    },
    **{
        f"{publication}-testbed": (f"{publication}-testbed.json", table)
        for publication, table in on_testbed.TABLES.items()
    },
}


# --- Publications ---


def of_publications() -> Iterator[tuple[str, str]]:
    """Name and Markdown of every table of every publication: what its book says of each
    experiment, the answers, the published numbers, and how long it takes."""
    for publication, names in publications.publications().items():
        file = publication.replace("/", "-")
        yield f"{file}-about", spent(json.loads((RESULTS / f"{file}-about.json").read_text()))
        shown = publications.book(publication)
        for name in names:
            rows = json.loads((RESULTS / f"{file}-{name}.json").read_text())
            explained = RESULTS / f"{file}-{name}-explanations.json"
            if explained.exists():
                rows += [
                    {"metric": book.EXPLAINED, **row} for row in json.loads(explained.read_text())
                ]
            yield f"{file}-{name}-answers", book.statements(rows)
            yield f"{file}-{name}-published", book.published(rows)
            for what, table in shown[name].all.items():
                yield f"{file}-{name}-{what}", table.markdown(rows)


def spent(about: Result) -> str:
    """The CPU time of each experiment, and the machine."""
    seconds: dict[str, list[str]] = {}
    for row in about["rows"]:
        words = f"{row['name']} {row['cpu_s']:.0f} s"
        seconds.setdefault(tabular.circumstances(row), []).append(words)
    return "\n\n".join(
        f"Seconds of one core: {', '.join(words)}. {on_what}" for on_what, words in seconds.items()
    )
