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
    "false-echoes",
    "false-fields",
    "coding",
    "per-packet-code",
    "tunnel",
)
