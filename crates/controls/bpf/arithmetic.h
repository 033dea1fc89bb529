#pragma once

#include "kernel.h"

INLINE u64 min64(u64 a, u64 b)
{
    return a < b ? a : b;
}

/* a * b / c, rounded down, if it is below 2^64, and b * c too. */
INLINE u64 mul_div(u64 a, u64 b, u64 c)
{
    return a / c * b + a % c * b / c;
}

INLINE u64 now_us(void)
{
    return ktime_get_ns() / 1000;
}
