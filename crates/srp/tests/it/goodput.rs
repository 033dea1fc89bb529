//! The goodput of a hop.
