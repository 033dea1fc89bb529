"""yavatkar1994: TCP over a wireless hop with handoffs, and connections split at the base station.

Tables 1 to 3, several handoffs in a row, what a handoff costs and what the fixed host notices of
it, what a new association over the hop changes, what the publication leaves open, and SRP beside a
TCP flow.
"""

from lasthop.publications.yavatkar1994.schemes import ENABLED, MTCP, SRP

EXPERIMENTS = (
    "table1",
    *(name for name, scheme in (("table2", MTCP), ("table3", SRP)) if scheme in ENABLED),
    "handoffs",
    "fixed",
    "cost",
    "restored",
    "sensitivity",
    "today",
    "hop",
    "beside",
)
