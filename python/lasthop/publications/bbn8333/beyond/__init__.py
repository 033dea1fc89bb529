"""What bbn8333 §8.3 leaves open, and what its §5 to §7 only discuss, as experiments.

Each module here is one: its cells, what is measured, a picture, and what comes of it.
"""
