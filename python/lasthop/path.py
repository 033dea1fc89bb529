"""A path that is given by numbers instead of a scenario file."""

from __future__ import annotations

from dataclasses import dataclass

from lasthop import units
from lasthop.errors import UserError
from lasthop.scenario import Scenario

#: How long a transfer may take, in seconds: its run ends with it.
LONGEST_S = 3600.0
#: From so many packets on, 30 s are not needed.
MOST_PACKETS = 100_000


@dataclass(frozen=True)
class Path:
    """A path as engineers know it: TOML's quantities for rate, delay and queue.

    >>> Path(rate="2 Mbit/s", delay="300 ms", bit_errors=1e-6)
    """

    rate: str
    #: One way.
    delay: str
    #: The share of packets that vanish: one by one, or `burst` in a row on average.
    loss: float = 0.0
    burst: float | None = None
    #: The probability that a bit is damaged. The end of the link detects it and can report it.
    bit_errors: float = 0.0
    #: How long the path is away, on average, and how long it is there in between.
    outage: str | None = None
    between_outages: str = "60 s"
    #: What the queue holds; else what the path holds in a round trip, and 20 packets at least.
    queue: str | None = None
    #: The transfer; without, one that never ends.
    size: str | None = None

    def scenario(self) -> Scenario:
        """The path with one transfer, and TCP as today's RFCs have it."""
        probe = Scenario.from_toml(self._text(duration_s=60, queue="1 packet"), str(self))
        probe.outline()  # Errors in the quantities are reported before they are used.
        rate_bps, delay_s = units.parse(self.rate), units.parse(self.delay)
        in_flight = rate_bps * 2 * delay_s / 8 / 1500
        queue = self.queue or f"{max(20, round(in_flight))} packets"
        # A hundred round trips, and thousands of packets if that does not take for ever; of a fast
        # link not more packets than it takes.
        packet_s = 1500 * 8 / rate_bps
        duration_s = max(
            min(30.0, MOST_PACKETS * packet_s), 100 * 2 * delay_s, min(2000 * packet_s, 300.0), 1.0
        )
        if self.outage:
            cycle_s = units.parse(self.outage) + units.parse(self.between_outages)
            duration_s = max(duration_s, 10 * cycle_s)
        if self.size is not None:
            duration_s = LONGEST_S
        return Scenario.from_toml(self._text(duration_s=round(duration_s), queue=queue), str(self))

    def __str__(self) -> str:
        words = [f"{self.rate}, {self.delay} one way"]
        if self.loss:
            rows = f" in rows of {self.burst:g}" if self.burst else ""
            words.append(f"{self.loss:.3g} of the packets lost{rows}")
        if self.bit_errors:
            words.append(f"bit errors {units.power_of_ten(self.bit_errors)}")
        if self.outage:
            words.append(f"away for {self.outage} after {self.between_outages}")
        if self.queue:
            words.append(f"a queue of {self.queue}")
        if self.size:
            words.append(f"a transfer of {self.size}")
        return ", ".join(words)

    def _text(self, *, duration_s: float, queue: str) -> str:
        if self.burst is None:
            errors = f"{{ bit = {self.bit_errors!r}, packet = {self.loss!r} }}"
        elif self.bit_errors:
            raise UserError("bursts are of lost packets: expected no bit errors beside them")
        else:
            errors = f"{{ gilbert-elliott = {{ loss = {self.loss!r}, burst = {self.burst!r} }} }}"
        outages = (
            f'outages = {{ mean_up = "{self.between_outages}", mean_down = "{self.outage}" }}'
            if self.outage
            else ""
        )
        traffic = f'{{ size = "{self.size}" }}' if self.size else '"bulk"'
        return f"""\
title    = "{self}"
duration = "{duration_s} s"

[nodes]
sender   = {{}}
receiver = {{}}

[[links]]
between = ["sender", "receiver"]
rate    = "{self.rate}"
delay   = "{self.delay}"
queue   = "{queue}"
errors  = {errors}
{outages}

[[flows]]
name    = "transfer"
from    = "sender"
to      = "receiver"
traffic = {traffic}
tcp     = {{ receive_window = "16 MB" }}
"""
