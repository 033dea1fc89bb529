"""What limits a flow on its path, what would help, and who would have to change what.

Everything that there is gets simulated, each remedy by itself beside the path as it is, in pairs of
runs; nothing is looked up. What comes to the engine's tables comes here by itself: settings of the
flow's TCP, boxes in the nodes between its ends, and the queue of the slowest link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lasthop import baseline, hops, pairs
from lasthop.causes import causes
from lasthop.errors import UserError
from lasthop.pairs import Runs
from lasthop.path import LONGEST_S, Path
from lasthop.remedy import WORTH, Goal, Limit, Remedy, numbers
from lasthop.results import Progress
from lasthop.scenario import Scenario
from lasthop.stats import Estimate, mean_interval, ratio_interval
from lasthop.variants import Target, Variant, is_hidden, point, variants

__all__ = ["Advice", "Goal", "Limit", "Path", "Remedy", "advise"]

SEEDS = 20
#: The queue is a problem of its own from so many smallest round trips on, and so many seconds.
BLOATED, BLOATED_S = 2.5, 0.1
#: 30 objects of 10 kB, which HTTP/2 sends over one connection.
PAGE = {"requests": {"request": "300 B", "response": "300 kB", "count": 1}}


@dataclass(frozen=True)
class Advice:
    """What there is to say about a path."""

    title: str
    goal: Goal
    #: "goodput_bps"; "completed_s" where transfers end; "rtt_s" for the goal latency.
    metric: str
    #: The TCP that the remedies are compared with.
    tcp: str
    #: The path as it is, by the metric.
    today: Estimate
    #: The share of the slowest link's rate that is used; None if that is not known.
    used: float | None
    #: The round trip under load, and the smallest one, in seconds.
    rtt: Estimate | None
    rtt_min: Estimate | None
    #: What limits the flow, the largest share first.
    limits: Sequence[Limit]
    #: The best first.
    remedies: Sequence[Remedy]
    #: Whether IPsec hides the flow's TCP headers. Remedies that read them are not tried then.
    hidden: bool = False

    @property
    def helping(self) -> list[Remedy]:
        """Those that help and can be had, the best first."""
        return [r for r in self.remedies if r.verdict == "helps" and r.buildable]

    @property
    def best(self) -> Remedy | None:
        """The best of those that help and are not only of the lab, or else of all that help."""
        available = (remedy for remedy in self.helping if not remedy.research)
        return next(available, next(iter(self.helping), None))

    @property
    def easiest(self) -> Remedy | None:
        """Of those that help, the best of those that ask least of people."""
        return min(self.helping, key=lambda remedy: remedy.effort, default=None)

    @property
    def oracle(self) -> Remedy | None:
        """What shows how much knowing every error at once would gain, if that helps."""
        return next((r for r in self.remedies if r.verdict == "helps" and not r.buildable), None)

    @property
    def is_bloated(self) -> bool:
        """Whether packets wait in the queue for much longer than the path itself takes."""
        if self.rtt is None or self.rtt_min is None:
            return False
        waits_s = self.rtt.value - self.rtt_min.value
        return self.rtt.value > BLOATED * self.rtt_min.value and waits_s > BLOATED_S

    @property
    def shortening(self) -> list[Remedy]:
        """What shortens the round trip under load and can be had, the shortest first."""
        found = [r for r in self.remedies if r.shortens and r.buildable and r.rtt]
        return sorted(found, key=lambda remedy: remedy.rtt.value if remedy.rtt else 0.0)

    def as_dict(self) -> dict[str, Any]:
        """For other programs."""
        return {
            "title": self.title,
            "goal": str(self.goal),
            "metric": self.metric,
            "tcp": self.tcp,
            "today": numbers(self.today),
            "used": self.used,
            "rtt": numbers(self.rtt),
            "rtt_min": numbers(self.rtt_min),
            "bloated": self.is_bloated,
            "hidden": self.hidden,
            "limits": [limit.as_dict() for limit in self.limits],
            "remedies": [remedy.as_dict() for remedy in self.remedies],
        }


def advise(
    path: Path | Scenario | str,
    *,
    settings: Mapping[str, object] | None = None,
    flow: str | None = None,
    goal: Goal | str = Goal.GOODPUT,
    seeds: int = SEEDS,
    first_seed: int = 1,
    threads: int = 0,
    progress: Progress | None = None,
) -> Advice:
    """Simulates every remedy on a path, or for a flow of a scenario (else its only one).

    Gains are ratios over pairs of runs with the same errors, with intervals of 95 %. Each pair is
    on a path that is up to 3 % slower or faster, and shorter or longer.
    """
    goal = Goal(goal)
    if seeds < 2:
        raise UserError("one run says nothing about the spread: expected 2 seeds or more")
    if isinstance(path, Path):
        scenario = path.scenario()
    else:
        scenario = path if isinstance(path, Scenario) else Scenario.load(path)
    scenario = scenario.set(settings) if settings else scenario
    outline = scenario.outline()
    if outline.points > 1:
        raise UserError(
            f"advice is for one path, and this scenario has {outline.points}:"
            " set the keys that it sweeps, such as --set links.0.errors.bit=1e-6"
        )
    index = outline.index(flow)
    if goal is Goal.PAGE:
        scenario = _with_page(scenario, index, alone=len(outline.flows) == 1)
    target = Target(scenario, index)
    limiting, tried = causes(target), variants(scenario, index)
    said = [
        target.said,
        *(cause.document for cause in limiting),
        *(point(of) for variant in tried for of in (variant.today, variant.scenario)),
    ]
    today, *others = pairs.run(
        said,
        scenario.name,
        outline.flows[index],
        runs=seeds,
        first_seed=first_seed,
        threads=threads,
        progress=progress,
    )
    of_causes, of_tried = others[: len(limiting)], others[len(limiting) :]
    metric = _metric(goal, today)
    found = [
        _remedy(variant, before, with_it, metric, goal)
        for variant, before, with_it in zip(tried, of_tried[::2], of_tried[1::2], strict=True)
    ]
    found.sort(key=lambda remedy: -remedy.gain.value)
    limits = [
        Limit(
            cause.name, cause.removed, _share(runs, today, metric), mean_interval(metric.of(runs))
        )
        for cause, runs in zip(limiting, of_causes, strict=True)
    ]
    link = hops.bottleneck(target.said, index)
    rate = None if link is None else _used(today, link.rate_bps)
    if rate is not None and goal is not Goal.LATENCY:
        limits.append(Limit("rate", "", rate, None))
    return Advice(
        title=outline.title,
        goal=goal,
        metric=metric.name,
        tcp=baseline.words(target.said, index),
        today=mean_interval(metric.of(today)),
        used=None if rate is None else rate.value,
        rtt=_mean(_round_trips(today)),
        rtt_min=_mean(_known(today.rtt_min_s)),
        limits=sorted(filter(_counts, limits), key=lambda limit: -limit.share.value),
        remedies=found,
        hidden=is_hidden(scenario, index),
    )


@dataclass(frozen=True)
class _Metric:
    name: str
    of: Callable[[Runs], list[float]]
    less_is_better: bool


def _metric(goal: Goal, today: Runs) -> _Metric:
    if goal is Goal.LATENCY:
        return _Metric("rtt_s", _some_round_trips, less_is_better=True)
    # A transfer that does not end in time has only its goodput; if it does, but not with some
    # remedy, that one takes as long as the run at the least.
    if _known(today.completed_s) is not None:
        return _Metric("completed_s", lambda of: of.duration_s, less_is_better=True)
    if goal is Goal.PAGE:
        raise UserError(
            "the page does not arrive before the run ends: expected a longer duration, or another"
            " goal"
        )
    return _Metric("goodput_bps", lambda of: of.goodput_bps, less_is_better=False)


def _known(values: Sequence[float | None]) -> list[float] | None:
    """The values, if there are all."""
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def _round_trips(runs: Runs, path: Runs | None = None) -> list[float] | None:
    """The round trips under load, on the path of other runs: the smallest one, and half of the
    packets wait for so long in the queue at most. None if they are not known in some run.

    So it is of packets that pass the whole path, also where a box splits the connection.
    """
    least, waits = _known((path or runs).rtt_min_s), _known(runs.wait_s)
    if least is None or waits is None:
        return None
    return [shortest + wait for shortest, wait in zip(least, waits, strict=True)]


def _some_round_trips(runs: Runs, path: Runs | None = None) -> list[float]:
    found = _round_trips(runs, path)
    if found is None:
        raise UserError("nothing gets through on this path: there is no round trip")
    return found


def _remedy(variant: Variant, today: Runs, with_it: Runs, metric: _Metric, goal: Goal) -> Remedy:
    before, after = _round_trips(today), _round_trips(with_it, today)
    rtt_gain = None if before is None or after is None else _gain(before, after)
    goodput_gain = _gain(with_it.goodput_bps, today.goodput_bps)
    if goal is Goal.LATENCY:
        values = _some_round_trips(with_it, today)
        gain = _gain(_some_round_trips(today), values)
    else:
        values, old = metric.of(with_it), metric.of(today)
        gain = _gain(old, values) if metric.less_is_better else _gain(values, old)
    of = variant.remedy
    return Remedy(
        name=of["name"],
        changes=variant.changes,
        gain=gain,
        value=mean_interval(values),
        needs=tuple(of["needs"]),
        buildable=of["buildable"],
        means=of["means"],
        modes=tuple(of["modes"]),
        research=of["research"],
        rtt=_mean(after),
        rtt_gain=rtt_gain,
        goodput_gain=goodput_gain,
        goal=goal,
    )


def _gain(more: list[float], less: list[float]) -> Estimate:
    """The ratio over pairs of runs."""
    if more == less:
        return Estimate(1.0, 1.0, 1.0, len(more))
    if sum(less) <= 0:
        raise UserError("nothing gets through on this path: there is nothing to compare")
    if sum(more) <= 0:
        return Estimate(0.0, 0.0, 0.0, len(more))
    return ratio_interval(more, less)


def _share(without: Runs, today: Runs, metric: _Metric) -> Estimate:
    """The share of today's time, for a byte or a transfer, or round trip that a cause takes."""
    values, now = metric.of(without), metric.of(today)
    left = _gain(values, now) if metric.less_is_better else _gain(now, values)
    return Estimate(1 - left.value, 1 - left.hi, 1 - left.lo, left.n)


def _counts(limit: Limit) -> bool:
    """Whether a cause takes a share that is worth a word."""
    return limit.share.lo > 0 and limit.share.value >= 1 - 1 / WORTH


def _used(runs: Runs, rate_bps: float) -> Estimate:
    """The share of a rate that is used."""
    of = mean_interval(runs.goodput_bps)
    return Estimate(of.value / rate_bps, of.lo / rate_bps, of.hi / rate_bps, of.n)


def _mean(values: list[float] | None) -> Estimate | None:
    return None if values is None else mean_interval(values)


def _with_page(scenario: Scenario, flow: int, *, alone: bool) -> Scenario:
    """The scenario with a page instead of what a flow has; by itself, it ends the run."""
    page = scenario.set({f"flows.{flow}.traffic": PAGE})
    return page.set({"duration": f"{LONGEST_S:.0f} s"}) if alone else page
