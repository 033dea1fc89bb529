/* Westwood+: congestion reduces the window to what the path holds, the estimated bandwidth times the shortest round
 * trip (crates/tcp/src/congestion/westwood.rs, westwood_plus.rs). The window grows as Reno's.
 */
#include "arithmetic.h"
#include "settings.h"

/* Times are microseconds; 0: none yet. */
struct state {
    u64 started;    /* 1 once the connection is established */
    u64 una;
    u64 duplicates; /* octets counted for duplicate acknowledgments and not yet acknowledged */
    u64 rtt;
    u64 shortest;
    u64 since;      /* when the present round trip began, and octets acknowledged since */
    u64 octets;
    u64 bandwidth;  /* octets per second, multiples of 2^-8; 0 if unknown */
    u64 ssthresh;   /* segments, to be set when the window has been reduced; 0 if there is none */
};

/* The octets that an acknowledgment stands for. */
INLINE u64 count(struct state *state, u64 acked, u64 mss)
{
    if (!acked) {
        state->duplicates += mss;
        return mss;
    }
    if (acked <= mss)
        return acked;
    if (state->duplicates >= acked) {
        state->duplicates -= acked;
        return mss;
    }
    acked -= state->duplicates;
    state->duplicates = 0;
    return acked;
}

INLINE void measure(struct state *state, u64 now, u64 octets)
{
    state->octets += octets;
    /* The first acknowledgment answers what was sent a round trip ago. */
    if (!state->since)
        state->since = now - state->rtt;
    u64 span = now - state->since;
    if (!state->rtt || span < state->rtt || !span)
        return;
    u64 sample = (state->octets * 1000000 << 8) / span;
    u64 keep = state->bandwidth ? settings.westwood_keep : 0;
    state->bandwidth = mul_div(state->bandwidth, keep, ONE) + mul_div(sample, ONE - keep, ONE);
    state->since = now;
    state->octets = 0;
}

/* The octets that the path holds; 0 if unknown. */
INLINE u64 capacity(struct state *state)
{
    return mul_div(state->bandwidth, state->shortest, 1000000 << 8);
}

SEC("struct_ops") void init(u64 *arguments)
{
    struct tcp_sock *tp = (void *)arguments[0];
    struct state *state = (void *)tp->inet_conn.icsk_ca_priv;
    *state = (struct state){.started = 1, .una = tp->snd_una};
}

/* Comes before in_ack_event. */
SEC("struct_ops") void pkts_acked(u64 *arguments)
{
    struct tcp_sock *tp = (void *)arguments[0];
    struct ack_sample *sample = (void *)arguments[1];
    struct state *state = (void *)tp->inet_conn.icsk_ca_priv;
    s32 rtt = sample->rtt_us;
    if (rtt <= 0 || !state->started)
        return;
    state->rtt = rtt;
    if (!state->shortest || state->rtt < state->shortest)
        state->shortest = rtt;
}

SEC("struct_ops") void in_ack_event(u64 *arguments)
{
    struct tcp_sock *tp = (void *)arguments[0];
    u32 flags = arguments[1];
    struct state *state = (void *)tp->inet_conn.icsk_ca_priv;
    u64 acked = (u32)(tp->snd_una - (u32)state->una);

    if (!state->started || (!acked && (!tp->packets_out || flags & CA_ACK_WIN_UPDATE)))
        return;
    state->una = tp->snd_una;
    struct call call = {
        .now_us = now_us(),
        .acked_octets = acked,
        .rtt_us = state->rtt,
        .mss = tp->mss_cache,
    };
    measure(state, call.now_us, count(state, acked, call.mss));
    call.after = capacity(state);
    record(&call);
}

SEC("struct_ops") void cong_avoid(u64 *arguments)
{
    tcp_reno_cong_avoid((struct sock *)arguments[0], arguments[1], arguments[2]);
}

/* The kernel makes it the window's end as well, which must not be larger than the window is. */
SEC("struct_ops") u32 ssthresh(u64 *arguments)
{
    struct tcp_sock *tp = (void *)arguments[0];
    struct state *state = (void *)tp->inet_conn.icsk_ca_priv;
    u64 octets = capacity(state);
    if (!octets)
        return tcp_reno_ssthresh((struct sock *)arguments[0]);
    u64 segments = octets / tp->mss_cache;
    state->ssthresh = segments < 2 ? 2 : segments;
    return min64(state->ssthresh, tp->snd_cwnd < 2 ? 2 : tp->snd_cwnd);
}

SEC("struct_ops") void cwnd_event(u64 *arguments)
{
    struct tcp_sock *tp = (void *)arguments[0];
    u32 event = arguments[1];
    struct state *state = (void *)tp->inet_conn.icsk_ca_priv;
    if (event != CA_EVENT_COMPLETE_CWR && event != CA_EVENT_LOSS)
        return;
    if (state->ssthresh)
        tp->snd_ssthresh = state->ssthresh;
    state->ssthresh = 0;
}

SEC("struct_ops") u32 undo_cwnd(u64 *arguments)
{
    struct tcp_sock *tp = (void *)arguments[0];
    struct state *state = (void *)tp->inet_conn.icsk_ca_priv;
    state->ssthresh = 0;
    return tcp_reno_undo_cwnd((struct sock *)arguments[0]);
}

SEC(".struct_ops.link") struct tcp_congestion_ops lasthop_west = {
    .init = (void *)init,
    .pkts_acked = (void *)pkts_acked,
    .in_ack_event = (void *)in_ack_event,
    .cong_avoid = (void *)cong_avoid,
    .ssthresh = (void *)ssthresh,
    .cwnd_event = (void *)cwnd_event,
    .undo_cwnd = (void *)undo_cwnd,
    .name = "lasthop_west",
    .flags = TCP_CONG_NON_RESTRICTED,
};
