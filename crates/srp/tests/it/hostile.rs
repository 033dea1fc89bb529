//! Forged and contradictory PDUs.
