/* Which of the engines this processor can run. */

#include "engine.h"

int regard_threads = 1;

void regard_use_threads(int threads) { regard_threads = threads; }

int regard_interface(void) { return INTERFACE; }

int regard_kind(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
        return 512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 256 : 0;
}
