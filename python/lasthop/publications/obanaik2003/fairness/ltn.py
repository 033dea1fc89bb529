"""A long thin network (§3.2.1, test configuration 2)."""

from __future__ import annotations

from lasthop.publications.obanaik2003.fairness import last_hop
from lasthop.publications.obanaik2003.fairness.policies import CR, IBK
from lasthop.publications.obanaik2003.fairness.simulation import LTN

STUDY = last_hop.study(
    LTN,
    "§3.2.1, table 3.2, figure 3.3",
    {CR: "(a) Constant rate", IBK: "(b) Increase by K"},
    "Figure 3.3",
)
