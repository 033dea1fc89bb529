"""ishac2001: TCP spoofing before a satellite link."""

EXPERIMENTS = (
    "fig5",
    "fig9",
    "backpressure",
)
