"""A slow link (§3.2.1, test configuration 1)."""

from __future__ import annotations

from lasthop.publications.obanaik2003 import last_hop
from lasthop.publications.obanaik2003.policies import CANIT, CR, IBK
from lasthop.publications.obanaik2003.simulation import SLOW

STUDY = last_hop.study(
    SLOW,
    "§3.2.1, table 3.1, figure 3.2",
    {CANIT: "(a) CANIT", CR: "(b) Constant rate", IBK: "(c) Increase by K"},
    "Figure 3.2",
)
reproduce = STUDY.reproduce
