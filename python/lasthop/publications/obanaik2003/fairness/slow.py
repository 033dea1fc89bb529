"""A slow link (§3.2.1, test configuration 1)."""

from __future__ import annotations

from lasthop.publications.obanaik2003.fairness import last_hop
from lasthop.publications.obanaik2003.fairness.policies import CANIT, CR, IBK
from lasthop.publications.obanaik2003.fairness.simulation import SLOW

STUDY = last_hop.study(
    SLOW,
    "§3.2.1, table 3.1, figure 3.2",
    {CANIT: "(a) CANIT", CR: "(b) Constant rate", IBK: "(c) Increase by K"},
    "Figure 3.2",
)
