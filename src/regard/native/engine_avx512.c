/* The engine for processors with AVX-512 and its instructions for eight bits (VNNI). */

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,avx2")
#define WIDTH 16
#define ROWS 12
#define NAME(name) regard_##name##_avx512
#include "vectors.h"

#include "engine_body.h"
#include "training_body.h"
#include "loss_body.h"
#include "learning_body.h"
