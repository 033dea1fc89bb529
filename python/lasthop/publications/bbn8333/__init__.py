"""bbn8333: explicit transport error notification (ETEN), sections 3 and 4 of the report."""

EXPERIMENTS = ("sim1", "sim2", "sim3", "sim4", "sim5", "sim6", "sim7", "sim8")
