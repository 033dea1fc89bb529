/* SPEP, the base station (obanaik2003 §4.2): as crates/middlebox/src/spep.rs, without `merge` and `claims`.
 *
 * `mark` runs for each packet that leaves by the interface of the wireless hop, before the interface's queue. What the
 * queue refuses has not been sent over the hop: then `dropped` runs, and takes the packet back.
 */
#include "kernel.h"

/* Written by the loader. */
struct settings {
    u64 idle; /* a flow that has been idle for longer is forgotten, nanoseconds */
    u32 link_header; /* bytes in front of the IP header */
    u32 interface; /* that of the hop, by which packets leave */
    u64 namespace; /* the inode of its network namespace: others have an interface with this index, too */
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
    struct run forgotten; /* what the latest packet has pushed out; of zeros if nothing */
};

struct {
    int (*type)[BPF_MAP_TYPE_LRU_HASH];
    int (*max_entries)[65536]; /* or as the loader says */
    struct key *key;
    struct flow *value;
} flows SEC(".maps");

/* A packet that was marked, and where its ESP header is, bytes behind the start of the IP header. */
struct packet {
    struct key key;
    u32 sequence; /* in network byte order */
    u32 esp; /* 0 if there is none */
};

/* What a CPU has done. */
struct done {
    u64 marked, new_flows, expired_flows, contended, dropped;
    struct packet latest;
};

struct {
    int (*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
    int (*max_entries)[1];
    u32 *key;
    struct done *value;
} done SEC(".maps");

/* IPv6 and its extension headers (RFC 8200). */
enum { IPV6 = 40, HOP_BY_HOP = 0, ROUTING = 43, ESP = 50, DESTINATION_OPTIONS = 60 };
enum { ESP_HEADER = 16 };
/* The flow label in the first word. */
#define LABEL BE32(0xfffff)
/* The longest chain of extension headers that the lab's box reads, bytes, and the most headers in one with the option. */
enum { LONGEST_CHAIN = 56, MOST_HEADERS = 1 + (LONGEST_CHAIN - 32) / 8 };

/* Notes a packet of a flow. */
INLINE void note(struct flow *flow, u32 sequence)
{
    struct run *runs = flow->runs, none = {};
    u32 used = flow->used;
    flow->forgotten = none;
    if (used >= BLOCKS) {
        if (runs[2].last + 1 == sequence) {
            runs[2].last = sequence;
            return;
        }
        flow->forgotten = runs[0];
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

/* Takes back the latest packet of a flow, as if it had not been noted. False if it is another one. */
INLINE int take_back(struct flow *flow, u32 sequence)
{
    struct run *runs = flow->runs, none = {};
    u32 at = flow->used - 1;
    if (at >= BLOCKS || runs[at].last != sequence)
        return 0;
    if (runs[at].first != sequence) {
        runs[at].last = sequence - 1;
        return 1;
    }
    runs[at] = none;
    flow->used = at;
    if (flow->forgotten.first | flow->forgotten.last) {
        runs[2] = runs[1];
        runs[1] = runs[0];
        runs[0] = flow->forgotten;
        flow->forgotten = none;
        flow->used = BLOCKS;
    }
    return 1;
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
INLINE int blocks(struct done *done, u32 data[2 * BLOCKS])
{
    struct key *key = &done->latest.key;
    u64 now = ktime_get_coarse_ns();
    struct flow *flow = map_lookup(&flows, key);
    if (!flow) {
        struct flow none = { .seen = now };
        /* Another CPU may be the first. */
        done->new_flows += map_update(&flows, key, &none, BPF_NOEXIST) == 0;
        flow = map_lookup(&flows, key);
        if (!flow)
            return 0;
    }
    if (!lock(flow)) {
        done->contended++;
        return 0;
    }
    /* Another CPU may have looked at the clock later. */
    if (now > flow->seen && now - flow->seen > settings.idle) {
        __builtin_memset(flow->runs, 0, sizeof(flow->runs));
        flow->used = 0;
        done->expired_flows++;
    }
    flow->seen = now;
    note(flow, BE32(done->latest.sequence));
    for (int i = 0; i < BLOCKS; i++) {
        data[2 * i] = BE32(flow->runs[i].first);
        data[2 * i + 1] = BE32(flow->runs[i].last);
    }
    unlock(flow);
    done->marked++;
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
    u32 zero = 0, data[2 * BLOCKS];
    struct done *here = map_lookup(&done, &zero);
    if (!here)
        return TCX_NEXT;
    struct packet *packet = &here->latest;
    __builtin_memcpy(&packet->key, ip + 8, 2 * sizeof(packet->key.source));
    packet->key.label = *(u32 *)ip & LABEL;
    packet->sequence = *(u32 *)(esp + 4);
    packet->esp = 0;
    if (blocks(here, data)) {
        packet->esp = IPV6 + at;
        /* No checksum covers it. */
        skb_store_bytes(skb, start + IPV6 + option, data, sizeof(data), 0);
    }
    return TCX_NEXT;
}

/* The kernel has dropped a packet. Of a queue that refuses what arrives, it is the one that was marked just now on this
 * CPU; others, which have waited in a queue, are not taken back: those behind them say already that they were sent. */
SEC("tp_btf/kfree_skb")
int dropped(u64 *arguments)
{
    struct sk_buff *skb = (void *)arguments[0];
    struct net_device *device = skb->dev;
    if (!device || device->ifindex != settings.interface || device->nd_net.net->ns.inum != settings.namespace)
        return 0;
    u32 zero = 0, word, sequence;
    struct done *here = map_lookup(&done, &zero);
    if (!here || !here->latest.esp)
        return 0;
    struct packet *packet = &here->latest;
    const u8 *ip = skb->head + skb->network_header;
    struct key key;
    if (probe_read_kernel(&key, 2 * sizeof(key.source), ip + 8) || probe_read_kernel(&word, sizeof(word), ip) ||
        probe_read_kernel(&sequence, sizeof(sequence), ip + packet->esp + 4))
        return 0;
    key.label = word & LABEL;
    int is_it = sequence == packet->sequence && key.label == packet->key.label;
    for (int i = 0; i < 4; i++)
        is_it = is_it && key.source[i] == packet->key.source[i] && key.destination[i] == packet->key.destination[i];
    if (!is_it)
        return 0;
    packet->esp = 0;
    struct flow *flow = map_lookup(&flows, &key);
    if (flow && lock(flow)) {
        here->dropped += take_back(flow, BE32(sequence));
        unlock(flow);
    }
    return 0;
}
