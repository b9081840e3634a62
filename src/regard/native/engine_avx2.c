/* The engine for processors with AVX2; in eight bits torch computes there. */

#pragma GCC target("avx2,fma")
#define WIDTH 8
#define ROWS 6
#define NAME(name) regard_##name##_avx2
#include "vectors.h"

#include "engine_body.h"
#include "training_body.h"
#include "loss_body.h"
#include "learning_body.h"
