"""Table 2: the split connection, with TCP over both parts."""

from __future__ import annotations

from lasthop.publications.yavatkar1994 import tables
from lasthop.publications.yavatkar1994.schemes import MTCP

STUDY = tables.enabled(MTCP)
