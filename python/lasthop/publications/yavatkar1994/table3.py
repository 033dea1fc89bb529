"""Table 3: the split connection, with SRP over the wireless hop."""

from __future__ import annotations

from lasthop.publications.yavatkar1994 import tables
from lasthop.publications.yavatkar1994.schemes import SRP

STUDY = tables.enabled(SRP)
