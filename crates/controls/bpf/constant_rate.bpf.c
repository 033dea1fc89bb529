#include "increase.h"
#include "window.h"

struct state {
    struct window window;
};

INLINE u64 increase(struct state *state, struct call *call)
{
    return constant_rate(call->before, call->rtt_us);
}

#include "policy.h"

SEC(".struct_ops.link") struct tcp_congestion_ops lasthop_rate = {POLICY, .name = "lasthop_rate"};
