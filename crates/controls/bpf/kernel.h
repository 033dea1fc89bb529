/* The types, functions and helpers of the kernel that the controls use. Offsets are those of the running kernel
 * (CO-RE): only names and types matter here.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Never read: the kernel's functions take a pointer to one. */
struct sock {
    int sk_rcvbuf;
};

struct inet_connection_sock {
    u64 icsk_ca_priv[13];
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    u8 is_cwnd_limited : 1;
    u32 snd_cwnd;
    u32 snd_cwnd_clamp;
    u32 snd_ssthresh;
    u32 snd_una;
    u32 srtt_us; /* eighths of a microsecond */
    u32 mss_cache;
    u32 packets_out;
    u32 max_packets_out;
};

struct ack_sample {
    u32 pkts_acked;
    s32 rtt_us;
};

#pragma clang attribute pop

/* Its functions get a `struct sock *` that the verifier knows to be a `struct tcp_sock *`. */
struct tcp_congestion_ops {
    u32 (*ssthresh)(struct sock *);
    void (*cong_avoid)(struct sock *, u32, u32);
    void (*set_state)(struct sock *, u8);
    void (*cwnd_event)(struct sock *, u32);
    void (*in_ack_event)(struct sock *, u32);
    void (*pkts_acked)(struct sock *, const struct ack_sample *);
    u32 (*undo_cwnd)(struct sock *);
    void (*init)(struct sock *);
    char name[16];
    u32 flags;
};

/* Usable without CAP_NET_ADMIN, and by the sysctl of any network namespace. */
#define TCP_CONG_NON_RESTRICTED 1

enum { TCP_CA_LOSS = 4 };
enum { CA_EVENT_COMPLETE_CWR = 2, CA_EVENT_LOSS = 3 };
enum { CA_ACK_WIN_UPDATE = 2 };

extern u32 tcp_reno_ssthresh(struct sock *sk) SEC(".ksyms");
extern u32 tcp_reno_undo_cwnd(struct sock *sk) SEC(".ksyms");
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) SEC(".ksyms");
extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) SEC(".ksyms");

static u64 (*const ktime_get_ns)(void) = (void *)5;
static long (*const ringbuf_output)(void *map, void *data, u64 size, u64 flags) = (void *)130;

#define BPF_MAP_TYPE_RINGBUF 27

/* A bit of a byte, wherever the kernel has it: the offset of its byte, and the shifts that leave the bit. */
#define BIT(object, field)                                                                          \
    ((u64) * ((const u8 *)(object) + __builtin_preserve_field_info((object)->field, 0))             \
         << __builtin_preserve_field_info((object)->field, 4) >>                                    \
     __builtin_preserve_field_info((object)->field, 5))

/* As the kernel requires of programs that call its functions. */
char terms[] SEC("license") = "Dual MIT/GPL";
