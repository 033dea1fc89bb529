/* The increase functions (crates/tcp/src/congestion/increase), in multiples of 2^-24 segments, rounded down. */
#pragma once

#include "arithmetic.h"
#include "settings.h"

/* The longest round trip, 16.8 s, and less than 2^16 segments: products stay below 2^64. */
#define LONGEST_US ((1ULL << 24) - 1)
#define MOST ((1ULL << (16 + FRACTION)) - 1)

/* What one acknowledgment adds if a window of them adds `segments`. */
INLINE u64 per_ack(u64 segments, u64 window)
{
    return (min64(segments, MOST) << FRACTION) / window;
}

INLINE u64 standard(u64 window)
{
    return per_ack(ONE, window);
}

INLINE u64 increase_by_k(u64 window)
{
    return min64(per_ack(settings.k, window), ONE);
}

/* The round trip of the formulas; 0 as long as there is none. */
INLINE u64 round_trip(u64 srtt_us)
{
    return min64(settings.rtt_us ? settings.rtt_us : srtt_us, LONGEST_US);
}

INLINE u64 limit(u64 increase)
{
    return settings.cap ? min64(increase, settings.cap) : increase;
}

INLINE u64 constant_rate(u64 window, u64 srtt_us)
{
    u64 r = round_trip(srtt_us);
    u64 segments = r ? mul_div(settings.c * r, r, 1000000) / 1000000 : ONE;
    return limit(per_ack(segments, window));
}

INLINE u64 canit(u64 window, u64 srtt_us)
{
    u64 r = round_trip(srtt_us);
    u64 segments = r ? (r << FRACTION) / settings.nit_us : ONE;
    return limit(per_ack(segments, window));
}
