"""koutsianas2007: TCP with connectivity-change indications (RLCI).

Section 4 of the report, and what its section 6.2 leaves to others.
"""

EXPERIMENTS = (
    "fig4.2",
    "fig4.4",
    "steady-state",
    "fig4.7",
    "shared-probe",
    "after",
    "freeze",
    "attack",
)
