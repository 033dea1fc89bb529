/* A fairness policy: Reno, whose window grows by an increase function in congestion avoidance. The file that
 * includes this one defines before
 *   struct state                                 a connection's, with a `struct window window`
 *   u64 increase(struct state *, struct call *)  from what the call has until then
 * and after it the control, with POLICY and its own functions.
 */
#include "increase.h"

SEC("struct_ops") void cong_avoid(u64 *arguments)
{
    struct tcp_sock *tp = (void *)arguments[0];
    struct state *state = (void *)tp->inet_conn.icsk_ca_priv;
    u32 acked = arguments[2];

    if (!is_limited(tp))
        return;
    if (tp->snd_cwnd < tp->snd_ssthresh) {
        acked = tcp_slow_start(tp, acked);
        if (!acked)
            return;
    }
    struct call call = {
        .now_us = now_us(),
        .acked_segments = acked,
        .rtt_us = tp->srtt_us >> 3,
        .mss = tp->mss_cache,
        .before = window_of(tp, &state->window),
    };
    call.increase = increase(state, &call);
    u64 more = settings.per_ack ? call.increase : call.increase * acked;
    call.after = set_window(tp, &state->window, call.before + more);
    record(&call);
}

SEC("struct_ops") u32 ssthresh(u64 *arguments)
{
    return tcp_reno_ssthresh((struct sock *)arguments[0]);
}

SEC("struct_ops") u32 undo_cwnd(u64 *arguments)
{
    return tcp_reno_undo_cwnd((struct sock *)arguments[0]);
}

#define POLICY                                                                                      \
    .cong_avoid = (void *)cong_avoid, .ssthresh = (void *)ssthresh, .undo_cwnd = (void *)undo_cwnd, \
    .flags = TCP_CONG_NON_RESTRICTED
