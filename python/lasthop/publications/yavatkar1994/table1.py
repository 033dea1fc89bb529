"""Table 1: TCP from end to end."""

from __future__ import annotations

from lasthop.publications.yavatkar1994 import tables
from lasthop.publications.yavatkar1994.schemes import TCP

STUDY = tables.study(TCP)
