"""bbn8333: Explicit Transport Error Notification (BBN Technical Report 8333, 2002)."""
