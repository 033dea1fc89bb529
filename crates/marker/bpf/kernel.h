/* The types and helpers of the kernel that the program uses: linux/bpf.h, linux/if_ether.h. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

/* The beginning of the context of a packet; the kernel translates the accesses. */
struct __sk_buff {
    u32 len;
    u32 pkt_type;
    u32 mark;
    u32 queue_mapping;
    u32 protocol; /* in network byte order */
    u32 vlan_present;
    u32 vlan_tci;
    u32 vlan_proto;
    u32 priority;
    u32 ingress_ifindex;
    u32 ifindex;
    u32 tc_index;
    u32 cb[5];
    u32 hash;
    u32 tc_classid;
    u32 data;
    u32 data_end;
};

/* Of others, offsets are those of the running kernel (CO-RE): only names and types matter here. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
    u32 inum;
};

struct net {
    struct ns_common ns;
};

struct of_net {
    struct net *net;
};

struct net_device {
    int ifindex;
    struct of_net nd_net;
};

struct sk_buff {
    struct net_device *dev;
    u16 network_header;
    u8 *head;
};

#pragma clang attribute pop

enum { TCX_NEXT = -1 };
enum { ETH_P_IPV6 = 0x86dd };
enum { BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_LRU_HASH = 9 };
enum { BPF_NOEXIST = 1 };

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const skb_store_bytes)(struct __sk_buff *skb, u32 offset, const void *from, u32 len, u64 flags) =
    (void *)9;
static long (*const skb_pull_data)(struct __sk_buff *skb, u32 len) = (void *)39;
static long (*const probe_read_kernel)(void *to, u32 len, const void *from) = (void *)113;
/* With the resolution of the kernel's timer, 1 to 10 ms: it costs less than a read of the clock. */
static u64 (*const ktime_get_coarse_ns)(void) = (void *)160;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BE16(x) __builtin_bswap16(x)
#define BE32(x) __builtin_bswap32(x)
#else
#define BE16(x) (x)
#define BE32(x) (x)
#endif

/* As the kernel requires of programs that read its memory. */
char terms[] SEC("license") = "Dual MIT/GPL";
