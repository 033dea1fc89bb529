"""Chapters 4 and 5 of obanaik2003: SPEP, and what the thesis leaves open of it."""

EXPERIMENTS = (
    "fig5.2",
    "fig5.4",
    "fig5.8",
    "comparisons",
    "classification",
    "attacks",
)
