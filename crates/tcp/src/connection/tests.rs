//! Packet-diagram tests.
