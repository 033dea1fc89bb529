"""Verdicts, and what is said of a remedy."""

import pytest

from lasthop.remedy import Goal, Remedy
from lasthop.stats import Estimate
from lasthop.variants import Change


def remedy(
    lo: float = 1.2,
    hi: float = 1.4,
    *,
    needs: tuple[str, ...] = ("sender",),
    means: str = "code",
    modes: tuple[str, ...] = (),
    research: bool = False,
    goal: Goal = Goal.GOODPUT,
    goodput: float = 1.0,
    changes: tuple[Change, ...] = (),
) -> Remedy:
    """A remedy with this interval of its gain."""
    gain = Estimate((lo + hi) / 2, lo, hi, 20)
    same = Estimate(goodput, goodput, goodput, 20)
    return Remedy(
        name=None,
        changes=changes,
        gain=gain,
        value=gain,
        needs=needs,
        buildable=True,
        means=means,
        modes=modes,
        research=research,
        rtt=gain,
        rtt_gain=gain,
        goodput_gain=same,
        goal=goal,
    )


@pytest.mark.parametrize(
    ("lo", "hi", "verdict"),
    [
        (1.0, 1.0, "changes nothing"),
        (1.05, 1.2, "helps"),
        (1.04, 1.2, "undecided"),
        (0.9, 1.3, "undecided"),
        (0.96, 1.04, "makes no difference"),
        (0.9, 1.0, "undecided"),
        (0.9, 0.95, "harms"),
        (0.9, 0.96, "undecided"),
    ],
)
def test_the_whole_interval_decides(lo: float, hi: float, verdict: str) -> None:
    """Between what helps and what makes no difference is what is undecided."""
    assert remedy(lo, hi).verdict == verdict


def test_less_delay_for_less_goodput_is_no_help() -> None:
    """For the goal latency; what goodput gains does not count there."""
    assert remedy(goal=Goal.LATENCY, goodput=0.9).verdict == "helps"
    assert remedy(goal=Goal.LATENCY, goodput=0.89).verdict == "costs goodput"
    assert remedy(goodput=0.5).verdict == "helps"
    assert remedy(goodput=0.91).shortens
    assert not remedy(goodput=0.89).shortens


@pytest.mark.parametrize(
    ("of", "who"),
    [
        (remedy(means="setting"), "a sysctl at the sender"),
        (remedy(means="setting", needs=("receiver",)), "a sysctl at the receiver"),
        (remedy(means="setting", needs=("sender", "receiver")), "a sysctl at both ends"),
        (remedy(means="setting", needs=("middlebox",)), "the queue at the hop"),
        (remedy(), "the sender's TCP"),
        (remedy(needs=("sender", "receiver")), "both ends"),
        (
            remedy(needs=("middlebox",), modes=("spoof",)),
            "lasthopd in mode spoof at the hop",
        ),
        (
            remedy(needs=("middlebox", "host agent"), modes=("station", "mobile")),
            "lasthopd in mode station and mobile at the hop",
        ),
        (
            remedy(needs=("sender", "middlebox"), modes=("notify",)),
            "the sender's TCP and lasthopd in mode notify at the hop",
        ),
        (
            remedy(needs=("middlebox", "host agent")),
            "a box at the hop and an agent in the host",
        ),
    ],
)
def test_who_would_have_to_change_what_is_one_of_few_words(of: Remedy, who: str) -> None:
    """They follow from what the remedy needs, how, and which mode does it."""
    assert of.who == who


def test_settings_ask_less_than_code_and_one_party_less_than_two() -> None:
    """Research comes last."""
    in_order = [
        remedy(means="setting"),
        remedy(means="setting", needs=("sender", "receiver")),
        remedy(),
        remedy(needs=("sender", "middlebox")),
        remedy(means="setting", research=True),
    ]
    assert sorted(in_order, key=lambda of: of.effort) == in_order


def test_what_else_has_to_be_known_is_marked() -> None:
    """The end of the end-to-end meaning, clear headers, and research."""
    split = remedy(needs=("middlebox", "clear headers", "split connection"), research=True)
    headers, ends, research = split.marks
    assert headers.startswith("needs clear headers")
    assert ends.startswith("ends the connection")
    assert research.startswith("research-only")
    assert remedy().marks == []


def test_each_setting_has_a_line_with_its_place() -> None:
    """Of a single box its keys, of several each in braces; a sentence has only names."""
    of = remedy(
        changes=(
            Change('boxes = [{ box = "spoofer", hop = "b", rate = "1 Mbit/s" }]', "host", ("a",)),
            Change('boxes = [{ box = "esp" }, { box = "mss-clamp", mss = 9 }]', "peer", ("",)),
            Change("ip = 6", "flow"),
            Change('queue = "9 packets"', "link", ("a", "b")),
            Change('ecn = true\nmechanisms = [{ mechanism = "eln", every_hole = true }]', "tcp"),
        )
    )
    assert of.lines == [
        'a: box = "spoofer", hop = "b", rate = "1 Mbit/s"',
        'a gateway: { box = "esp" }',
        'a gateway: { box = "mss-clamp", mss = 9 }',
        "flow: ip = 6",
        'a->b: queue = "9 packets"',
        "ecn = true",
        'mechanisms = [{ mechanism = "eln", every_hole = true }]',
    ]
    assert of.short == (
        "spoofer with the rate in a and esp in a gateway and mss-clamp in a gateway"
        ' and flow: ip = 6 and a->b: queue = "9 packets" and ecn = true and eln'
    )
