/* Another function's growth while the bottleneck of the path has room, else the standard's
 * (crates/tcp/src/congestion/increase/auto.rs).
 */
#include "increase.h"
#include "window.h"

/* Rates are octets per second, multiples of 2^-16; times are microseconds, and 0 if there was none yet. */
struct state {
    struct window window;
    u64 started;       /* 1 once the connection is established */
    u64 una;
    u64 acked;         /* octets, by this acknowledgment */
    u64 after_timeout;
    u64 rate;          /* of the bottleneck: the fastest train of a round trip, averaged over round trips */
    u64 last, before;  /* when the last two acknowledgments arrived, and the octets of the last */
    u64 last_octets;
    u64 round;         /* when the present round trip began, and the fastest train in it */
    u64 fastest;
};

/* The rate of the train that ends with an acknowledgment of `octets`; 0 if it is unknown. */
INLINE u64 rate_until(struct state *state, u64 now, u64 octets, u64 train)
{
    u64 start = state->last;
    if (octets < train) {
        start = state->before;
        octets += state->last_octets;
    }
    return start && now > start ? (octets * 1000000 << 16) / (now - start) : 0;
}

INLINE void on_ack(struct state *state, struct call *call)
{
    u64 train = settings.auto_train * call->mss, now = call->now_us;
    /* An acknowledgment that closes a gap covers more than the last arrival. */
    int usual = call->acked_octets <= train && !call->after_timeout;
    u64 rate = usual ? rate_until(state, now, call->acked_octets, train) : 0;

    if (rate > state->fastest)
        state->fastest = rate;
    state->before = usual ? state->last : 0;
    state->last = usual ? now : 0;
    state->last_octets = call->acked_octets;
    if (!state->round)
        state->round = now;
    if (call->rtt_us && now - state->round >= call->rtt_us && state->fastest) {
        u64 weight = state->rate ? settings.auto_weight : ONE;
        state->rate += mul_div(state->fastest, weight, ONE) - mul_div(state->rate, weight, ONE);
        state->fastest = 0;
        state->round = now;
    }
}

INLINE u64 fast(struct call *call)
{
    if (settings.fast == FAST_INCREASE_BY_K)
        return increase_by_k(call->before);
    if (settings.fast == FAST_CONSTANT_RATE)
        return constant_rate(call->before, call->rtt_us);
    return canit(call->before, call->rtt_us);
}

INLINE u64 increase(struct state *state, struct call *call)
{
    call->acked_octets = state->acked;
    call->after_timeout = state->after_timeout;
    on_ack(state, call);

    u64 rtt = min64(call->rtt_us, LONGEST_US);
    u64 carried = mul_div(state->rate << (FRACTION - 16), rtt, call->mss * 1000000);
    u64 room = carried > call->before ? carried - call->before : 0;
    u64 most = mul_div(room, settings.auto_share, ONE);
    if (most < settings.auto_room)
        return standard(call->before);
    return min64(fast(call), per_ack(most, call->before));
}

#include "policy.h"

SEC("struct_ops") void init(u64 *arguments)
{
    struct tcp_sock *tp = (void *)arguments[0];
    struct state *state = (void *)tp->inet_conn.icsk_ca_priv;
    *state = (struct state){.started = 1, .una = tp->snd_una};
}

/* Comes before cong_avoid. */
SEC("struct_ops") void in_ack_event(u64 *arguments)
{
    struct tcp_sock *tp = (void *)arguments[0];
    struct state *state = (void *)tp->inet_conn.icsk_ca_priv;
    if (!state->started)
        return;
    state->acked = (u32)(tp->snd_una - (u32)state->una);
    state->una = tp->snd_una;
}

SEC("struct_ops") void set_state(u64 *arguments)
{
    struct tcp_sock *tp = (void *)arguments[0];
    struct state *state = (void *)tp->inet_conn.icsk_ca_priv;
    state->after_timeout = (u8)arguments[1] == TCP_CA_LOSS;
}

SEC(".struct_ops.link") struct tcp_congestion_ops lasthop_auto = {
    POLICY,
    .init = (void *)init,
    .in_ack_event = (void *)in_ack_event,
    .set_state = (void *)set_state,
    .name = "lasthop_auto",
};
