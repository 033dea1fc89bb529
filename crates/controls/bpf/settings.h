/* What the loader sets: the settings of a control, and constants of lasthop's own TCP. The same fields as
 * `Settings` in src/settings.rs. Fractions are multiples of 2^-24, so that ONE is 1.
 */
#pragma once

#include "kernel.h"

#define FRACTION 24
#define ONE (1ULL << FRACTION)

struct settings {
    u64 k;             /* segments per window */
    u64 c;             /* segments per second squared */
    u64 nit_us;        /* microseconds */
    u64 rtt_us;        /* microseconds; 0: the smoothed one */
    u64 cap;           /* segments per acknowledgment; 0: none */
    u64 fast;          /* auto's other function */
    u64 per_ack;       /* 1: an increase per acknowledgment; 0: per acknowledged segment */
    u64 auto_share;    /* of the room, in a round trip */
    u64 auto_room;     /* segments */
    u64 auto_weight;   /* of a round trip */
    u64 auto_train;    /* segments */
    u64 westwood_keep; /* the part of the estimate that a sample leaves */
    u64 record;        /* 1: calls are recorded */
};

enum { FAST_INCREASE_BY_K, FAST_CONSTANT_RATE, FAST_CANIT };

const volatile struct settings settings SEC(".rodata.settings");

/* A call with its inputs and results. The same fields as `Call` in src/record.rs. */
struct call {
    u64 now_us;
    u64 acked_segments;
    u64 acked_octets;
    u64 rtt_us;        /* the smoothed one; Westwood+: the last sample */
    u64 mss;
    u64 after_timeout;
    u64 before;        /* the window, ONE is a segment; Westwood+: 0 */
    u64 increase;      /* per acknowledgment, likewise; Westwood+: 0 */
    u64 after;         /* the window, likewise; Westwood+: octets that the path holds, 0 if unknown */
};

struct {
    int (*type)[BPF_MAP_TYPE_RINGBUF];
    int (*max_entries)[1 << 20];
} calls SEC(".maps");

INLINE void record(struct call *call)
{
    /* Else there is no such map: the loader leaves it out, and the verifier this call. */
    if (settings.record)
        ringbuf_output(&calls, call, sizeof(*call), 0);
}
