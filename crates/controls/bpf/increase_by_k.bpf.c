#include "increase.h"
#include "window.h"

struct state {
    struct window window;
};

INLINE u64 increase(struct state *state, struct call *call)
{
    return increase_by_k(call->before);
}

#include "policy.h"

SEC(".struct_ops.link") struct tcp_congestion_ops lasthop_byk = {POLICY, .name = "lasthop_byk"};
