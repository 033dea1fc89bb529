"""Questions that bbn8333 §8.3 leaves open, and ideas that its §5 to §7 only discuss."""

EXPERIMENTS = (
    "burst",
    "fade",
    "short",
    "web",
    "setup",
    "mistake",
    "alpha",
    "forms",
    "fairness",
    "ecn",
    "flood",
    "forged",
    "liar-forward",
    "liar-cumulative",
    "coding",
    "per-packet-code",
    "tunnel",
)
