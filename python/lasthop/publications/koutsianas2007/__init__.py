"""koutsianas2007: TCP that hears that its path has changed (RLCI).

Section 4 of the report, and what its section 6.2 leaves to others.
"""
