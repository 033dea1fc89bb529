/* The congestion window with its fraction of a segment. */
#pragma once

#include "arithmetic.h"
#include "settings.h"

struct window {
    u64 segments;
    u64 fraction;
};

/* Slow start and recovery, which change the window as well, leave whole segments. */
INLINE u64 window_of(struct tcp_sock *tp, struct window *window)
{
    u64 fraction = window->segments == tp->snd_cwnd ? window->fraction : 0;
    return ((u64)tp->snd_cwnd << FRACTION) + fraction;
}

INLINE u64 set_window(struct tcp_sock *tp, struct window *window, u64 value)
{
    value = min64(value, (u64)tp->snd_cwnd_clamp << FRACTION);
    window->segments = value >> FRACTION;
    window->fraction = value % ONE;
    tp->snd_cwnd = window->segments;
    return value;
}

/* A window that is not used does not grow: the kernel's tcp_is_cwnd_limited. */
INLINE int is_limited(struct tcp_sock *tp)
{
    if (BIT(tp, is_cwnd_limited))
        return 1;
    return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}
