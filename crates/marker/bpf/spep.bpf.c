/* SPEP, the base station (obanaik2003 §4.2): as crates/middlebox/src/spep.rs, without `merge` and `claims`.
 *
 * It runs for each packet that leaves by the interface of the wireless hop, before the interface's queue.
 */
#include "kernel.h"

/* Written by the loader. */
struct settings {
    u64 idle; /* a flow that has been idle for longer is forgotten, nanoseconds */
    u64 link_header; /* bytes in front of the IP header */
};

const volatile struct settings settings = {};

/* What identifies a flow (§4.2.2). */
struct key {
    u32 source[4];
    u32 destination[4];
    u32 label; /* in network byte order */
};

/* As crates/wire/src/spep.rs. */
enum { BLOCKS = 3, OPTION_TYPE = 0x3e, OPTION_DATA = 8 * BLOCKS, OPTION_START = 4 };

struct run {
    u32 first, last;
};

struct flow {
    u32 lock;
    u32 used;
    u64 seen;
    struct run runs[BLOCKS]; /* in the order of their arrival, the latest last */
};

struct {
    int (*type)[BPF_MAP_TYPE_LRU_HASH];
    int (*max_entries)[65536]; /* or as the loader says */
    struct key *key;
    struct flow *value;
} flows SEC(".maps");

struct counts {
    u64 marked, new_flows, expired_flows, contended;
};

struct {
    int (*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
    int (*max_entries)[1];
    u32 *key;
    struct counts *value;
} counts SEC(".maps");

/* IPv6 and its extension headers (RFC 8200). */
enum { IPV6 = 40, HOP_BY_HOP = 0, ROUTING = 43, ESP = 50, DESTINATION_OPTIONS = 60 };
enum { ESP_HEADER = 16 };
/* The longest chain of extension headers that the lab's box reads, bytes, and the most headers in one with the option. */
enum { LONGEST_CHAIN = 56, MOST_HEADERS = 1 + (LONGEST_CHAIN - 32) / 8 };

/* Notes a packet of a flow. */
INLINE void note(struct flow *flow, u32 sequence)
{
    struct run *runs = flow->runs;
    u32 used = flow->used;
    if (used >= BLOCKS) {
        if (runs[2].last + 1 == sequence) {
            runs[2].last = sequence;
            return;
        }
        runs[0] = runs[1];
        runs[1] = runs[2];
        used = BLOCKS - 1;
    } else if (used > 0 && runs[used - 1].last + 1 == sequence) {
        runs[used - 1].last = sequence;
        return;
    }
    runs[used].first = sequence;
    runs[used].last = sequence;
    flow->used = used + 1;
}

/* A spin lock: the kernel allows none of its own in a table that evicts. Who holds it is neither preempted nor
 * interrupted by another packet. An entry that is evicted at this moment may be another flow's already: then one packet
 * gets the runs of that flow, which takes a table in which all other flows have had packets meanwhile. */
INLINE int lock(struct flow *flow)
{
    for (int i = 0; i < 1000; i++)
        if (__sync_lock_test_and_set(&flow->lock, 1) == 0)
            return 1;
    return 0;
}

INLINE void unlock(struct flow *flow)
{
    __sync_lock_test_and_set(&flow->lock, 0);
}

/* Writes the data of the option behind a packet with this number. False if they are not known. */
INLINE int blocks(const struct key *key, u32 sequence, u32 data[2 * BLOCKS])
{
    u32 zero = 0;
    struct counts *count = map_lookup(&counts, &zero);
    if (!count)
        return 0;
    u64 now = ktime_get_coarse_ns();
    struct flow *flow = map_lookup(&flows, key);
    if (!flow) {
        struct flow none = { .seen = now };
        /* Another CPU may be the first. */
        count->new_flows += map_update(&flows, key, &none, BPF_NOEXIST) == 0;
        flow = map_lookup(&flows, key);
        if (!flow)
            return 0;
    }
    if (!lock(flow)) {
        count->contended++;
        return 0;
    }
    /* Another CPU may have looked at the clock later. */
    if (now > flow->seen && now - flow->seen > settings.idle) {
        __builtin_memset(flow->runs, 0, sizeof(flow->runs));
        flow->used = 0;
        count->expired_flows++;
    }
    flow->seen = now;
    note(flow, sequence);
    for (int i = 0; i < BLOCKS; i++) {
        data[2 * i] = BE32(flow->runs[i].first);
        data[2 * i + 1] = BE32(flow->runs[i].last);
    }
    unlock(flow);
    count->marked++;
    return 1;
}

SEC("tcx/egress")
int mark(struct __sk_buff *skb)
{
    if (skb->protocol != BE16(ETH_P_IPV6))
        return TCX_NEXT;
    u32 start = settings.link_header;
    u8 *ip = (u8 *)(u64)skb->data + start, *end = (u8 *)(u64)skb->data_end;
    if (ip + IPV6 > end)
        return TCX_NEXT;
    u8 kind = ip[6];
    /* Nearly every packet ends here. */
    if (kind != DESTINATION_OPTIONS && kind != HOP_BY_HOP)
        return TCX_NEXT;
    u32 longest = start + IPV6 + LONGEST_CHAIN + ESP_HEADER;
    if (ip + IPV6 + LONGEST_CHAIN + ESP_HEADER > end) {
        skb_pull_data(skb, skb->len < longest ? skb->len : longest);
        ip = (u8 *)(u64)skb->data + start, end = (u8 *)(u64)skb->data_end;
        if (ip + IPV6 > end)
            return TCX_NEXT;
    }
    u32 payload = BE16(*(u16 *)(ip + 4));
    if (ip[0] >> 4 != 6 || skb->len < start + IPV6 + payload)
        return TCX_NEXT;
    /* The option is in the first header, or behind the options for hops; others may follow. */
    int has_option = 0;
    u32 at = 0, option = 0;
    u8 before = DESTINATION_OPTIONS;
    for (int i = 0; i < MOST_HEADERS && kind != ESP; i++) {
        u8 *header = ip + IPV6 + at;
        if (header + 8 > end || (kind != HOP_BY_HOP && kind != ROUTING && kind != DESTINATION_OPTIONS))
            return TCX_NEXT;
        u32 len = 8 * (1 + (u32)header[1]);
        if (at + len > LONGEST_CHAIN || (kind == ROUTING && header[3] > 0))
            return TCX_NEXT;
        int here = kind == DESTINATION_OPTIONS && (i == 0 || (i == 1 && before == HOP_BY_HOP));
        if (here && header[2] == OPTION_TYPE && header[3] == OPTION_DATA && len >= OPTION_START + OPTION_DATA) {
            has_option = 1;
            option = at + OPTION_START;
        }
        before = kind;
        kind = header[0];
        at += len;
    }
    u8 *esp = ip + IPV6 + at;
    if (!has_option || kind != ESP || at + ESP_HEADER > payload || at > LONGEST_CHAIN || esp + ESP_HEADER > end)
        return TCX_NEXT;
    struct key key;
    __builtin_memcpy(&key, ip + 8, 2 * sizeof(key.source));
    key.label = *(u32 *)ip & BE32(0xfffff);
    u32 data[2 * BLOCKS];
    if (blocks(&key, BE32(*(u32 *)(esp + 4)), data))
        /* No checksum covers it. */
        skb_store_bytes(skb, start + IPV6 + option, data, sizeof(data), 0);
    return TCX_NEXT;
}
