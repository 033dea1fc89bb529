"""Textbook paths, with the answer that an expert would give and the reason for it."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from lasthop import units
from lasthop.advice import Advice, Path, advise
from lasthop.remedy import Goal
from lasthop.stats import Estimate

SEEDS = 8
#: Verdicts that contradict each other: none is "undecided", which is between them.
CONTRADICTIONS = [
    {"helps", "makes no difference"},
    {"helps", "changes nothing"},
    {"helps", "costs goodput"},
    {"helps", "harms"},
    {"harms", "makes no difference"},
    {"harms", "changes nothing"},
]


@dataclass(frozen=True)
class Textbook:
    """A path, and what is to be said of it."""

    #: Why an expert says so.
    reason: str
    path: Path
    #: The causes that limit the flow by a tenth or more, whatever their order.
    limits: set[str]
    #: Remedies that help, in a few words (patterns), each with who would have to change what.
    helps: dict[str, str] = field(default_factory=dict)
    #: Remedies that do not help.
    vain: Sequence[str] = ()
    #: Whether nothing helps but those.
    no_others: bool = False
    #: What asks least of people.
    easiest: str | None = None
    bloated: bool = False
    #: A cause whose share is about a tenth.
    perhaps: str | None = None
    goal: Goal = Goal.GOODPUT
    settings: dict[str, object] = field(default_factory=dict)

    def ask(self, *, rate: float = 1.0, delay: float = 1.0, first_seed: int = 1) -> Advice:
        """The advice for the path, with its rate and delay times these factors."""
        path = replace(
            self.path,
            rate=f"{units.parse(self.path.rate) * rate:.0f} bit/s",
            delay=f"{units.parse(self.path.delay) * delay * 1e6:.0f} us",
        )
        scenario = path.scenario().set(self.settings)
        return advise(scenario, goal=self.goal, seeds=SEEDS, first_seed=first_seed)

    def check(self, said: Advice) -> None:
        """The answer is the expert's."""
        causes = {limit.cause for limit in said.limits if limit.share.value >= 0.1}
        assert causes - {self.perhaps} == self.limits
        helping = {remedy.short: remedy for remedy in said.helping}
        for pattern, who in self.helps.items():
            found = fnmatch.filter(helping, pattern)
            assert found, pattern
            assert {helping[words].who for words in found} == {who}
        for words in self.vain:
            assert words not in helping, words
        assert not self.no_others or helping.keys() == self.helps.keys()
        if self.easiest is not None:
            assert said.easiest is not None
            assert said.easiest.short == self.easiest
        assert said.is_bloated == self.bloated


AT_HOP = "sender->receiver: queue ="
IN_GATEWAY = "lasthopd in mode spoof at the hop"
TEXTBOOK = {
    "geo with random losses": Textbook(
        reason="CUBIC takes each loss for congestion, and needs many round trips of 600 ms to"
        " recover; a controller that models the path does not, and Hybla grows as over 25 ms."
        " A report of damage has nothing to report where packets vanish.",
        path=Path("2 Mbit/s", "300 ms", loss=0.01),
        limits={"loss", "round trip", "rate"},
        perhaps="slow start",
        helps={'congestion = "bbr"': "a sysctl at the sender"},
        vain=['eten = "backward"', 'receive_window = "1 GB"'],
        easiest='congestion = "hybla"',
    ),
    "geo with damage that the link reports": Textbook(
        reason="What is damaged is not lost to congestion: told so, TCP retransmits and keeps its"
        " window (BBN Technical Report 8333).",
        path=Path("2 Mbit/s", "300 ms", bit_errors=1e-6),
        limits={"loss", "round trip", "rate"},
        perhaps="slow start",
        helps={
            'eten = "backward"': "the sender's TCP and lasthopd in mode notify at the hop",
            'congestion = "bbr"': "a sysctl at the sender",
        },
        vain=['receive_window = "1 GB"'],
        easiest='congestion = "hybla"',
    ),
    "long fat path with a small receive window": Textbook(
        reason="64 KiB in a round trip of 100 ms are 5 Mb/s, whatever the sender does.",
        path=Path("20 Mbit/s", "50 ms"),
        settings={"flows.0.tcp.receive_window": "64 KiB", "duration": "20 s"},
        limits={"receive window", "round trip", "rate"},
        helps={'receive_window = "1 GB"': "a sysctl at the receiver"},
        vain=['congestion = "bbr"', 'congestion = "hybla"', "snoop in a gateway"],
        easiest='receive_window = "1 GB"',
    ),
    "a queue that is much longer than the path": Textbook(
        reason="The line is busy, so no goodput is to be won: the delay is the problem.",
        path=Path("2 Mbit/s", "75 ms", queue="2 MB"),
        limits={"rate"},
        no_others=True,
        bloated=True,
    ),
    "the same, for latency": Textbook(
        reason="A queue that is managed or as long as the path, or a sender that leaves it empty.",
        path=Path("2 Mbit/s", "75 ms", queue="2 MB"),
        goal=Goal.LATENCY,
        limits={"buffer"},
        helps={
            f"{AT_HOP} {{ codel = * }}": "the queue at the hop",
            f"{AT_HOP} {{ fq_codel = * }}": "the queue at the hop",
            f'{AT_HOP} "*packets"': "the queue at the hop",
            'congestion = "bbr"': "a sysctl at the sender",
        },
        vain=['receive_window = "1 GB"', 'recovery = "sack"'],
        easiest='congestion = "bbr"',
        bloated=True,
    ),
    "a clean local network": Textbook(
        reason="TCP fills a short path without losses.",
        path=Path("100 Mbit/s", "500 us"),
        settings={"duration": "3 s"},
        limits={"rate"},
        no_others=True,
    ),
    "outages": Textbook(
        reason="While the path is away nothing passes, and no TCP brings it back: what is lost is"
        " the time of the outages.",
        path=Path("2 Mbit/s", "40 ms", outage="5 s", between_outages="20 s"),
        settings={"duration": "150 s"},
        limits={"outages", "rate"},
        vain=['eten = "backward"', 'congestion = "bbr"', "snoop in a gateway"],
        no_others=True,
    ),
    "losses in bursts": Textbook(
        reason="A burst is one event for a sender with SACK, but more than a code repairs that is"
        " made for single losses.",
        path=Path("5 Mbit/s", "50 ms", loss=0.02, burst=8.0),
        limits={"loss", "rate"},
        vain=['flow: coding = { signal = "none", strength = 0.1 }', 'eten = "backward"'],
    ),
    "a short transfer over a satellite": Textbook(
        reason="Slow start doubles once in 600 ms. A gateway that knows the rate of its hop sends"
        " the whole at once.",
        path=Path("10 Mbit/s", "300 ms", size="1 MB"),
        limits={"round trip", "slow start", "rate"},
        helps={"spoofer with the rate in a gateway": IN_GATEWAY},
        vain=['congestion = "bbr"', 'eten = "backward"', "pacing = true"],
    ),
    "a modem": Textbook(
        reason="A slow line is always busy, and 20 packets are 4 s.",
        path=Path("56 kbit/s", "60 ms"),
        limits={"rate"},
        no_others=True,
        bloated=True,
    ),
    "a short path with losses": Textbook(
        reason="Also a round trip of 10 ms is too long for CUBIC at 2 %; a repair at the hop hides"
        " the losses.",
        path=Path("20 Mbit/s", "5 ms", loss=0.02),
        settings={"duration": "10 s"},
        limits={"loss", "round trip", "rate"},
        helps={
            'congestion = "bbr"': "a sysctl at the sender",
            "snoop in a gateway": "a box at the hop",
        },
        vain=['eten = "backward"', 'receive_window = "1 GB"'],
        easiest='congestion = "bbr"',
    ),
    "a queue that is much shorter than the path": Textbook(
        reason="Bursts overflow it: a longer queue, or pacing, which makes no bursts.",
        path=Path("20 Mbit/s", "80 ms", queue="20 packets"),
        settings={"duration": "16 s"},
        limits={"rate", "round trip", "buffer"},
        perhaps="slow start",
        helps={
            'congestion = "bbr"': "a sysctl at the sender",
            "pacing = true": "a sysctl at the sender",
            f'{AT_HOP} "*packets"': "the queue at the hop",
        },
        vain=['eten = "backward"', 'receive_window = "1 GB"'],
    ),
}


@pytest.mark.parametrize("name", TEXTBOOK)
def test_a_textbook_path_has_the_answer_of_an_expert(name: str) -> None:
    """Its reason stands beside it."""
    path = TEXTBOOK[name]
    path.check(path.ask())


MOVES = [(1.02, 1.0), (0.98, 1.0), (1.0, 1.02), (1.0, 0.98)]
OTHER_SEEDS = 101
#: Of all kinds, and quick.
QUICK = ["a queue that is much longer than the path", "a short transfer over a satellite"]


@pytest.mark.parametrize("name", QUICK)
def test_an_answer_does_not_hang_on_two_percent(name: str) -> None:
    """Of the delay, with other seeds; `make soak` moves all."""
    path = TEXTBOOK[name]
    agree(path, path.ask(), path.ask(delay=1.02, first_seed=OTHER_SEEDS))


@pytest.mark.soak
@pytest.mark.parametrize("name", TEXTBOOK)
def test_no_answer_hangs_on_two_percent(name: str) -> None:
    """Neither of rate or delay, nor on the seeds."""
    path = TEXTBOOK[name]
    said = path.ask()
    for rate, delay in MOVES:
        agree(path, said, path.ask(rate=rate, delay=delay))
    agree(path, said, path.ask(first_seed=OTHER_SEEDS))


def agree(path: Textbook, one: Advice, other: Advice) -> None:
    """Both give the expert's answer, no verdicts contradict each other, and what one ranks with
    certainty, the other does not rank the other way round."""
    path.check(other)
    now = {remedy.short: remedy for remedy in reversed(other.remedies)}
    # Of several with the same few words, the first.
    before = {remedy.short: remedy for remedy in reversed(one.remedies)}
    pairs = [(remedy, now[words]) for words, remedy in before.items() if words in now]
    assert len(pairs) > 20
    for old, new in pairs:
        assert {old.verdict, new.verdict} not in CONTRADICTIONS, (old.short, old.gain, new.gain)
    for of in pairs:
        for other_pair in pairs:
            if is_above(of[0].gain, other_pair[0].gain):
                assert not is_above(other_pair[1].gain, of[1].gain), (of, other_pair)


def is_above(one: Estimate, other: Estimate) -> bool:
    """With certainty, and by 5 % or more."""
    return one.lo > 1.05 * other.hi
