"""Chapter 3 of obanaik2003: fairness policies on slow links and long thin networks."""

EXPERIMENTS = (
    "slow",
    "ltn",
    "disabled",
    "window",
    "buffers",
    "testbed",
    "testbed-buffers",
    "testbed-window",
    "testbed-disabled",
    "factors",
    "fast",
    "auto",
)
