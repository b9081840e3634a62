/* The few vector operations that the engine is written in, for processors with AVX-512 and with AVX2.
 *
 * A file that includes this says first for which: it sets the compiler's target and defines WIDTH, the floats of a
 * vector, and ROWS, the rows of a matrix product's tile, such that ROWS × 2 sums, two vectors of weights and one number
 * of input fit the processor's registers. */

#include <immintrin.h>

#if WIDTH == 16
typedef __m512 Vector;
#define load(from) _mm512_loadu_ps(from)
#define store(to, v) _mm512_storeu_ps(to, v)
#define all(number) _mm512_set1_ps(number)
#define multiply_add(a, b, c) _mm512_fmadd_ps(a, b, c)
#define larger(a, b) _mm512_max_ps(a, b)
#define smaller(a, b) _mm512_min_ps(a, b)
#define add_up(v) _mm512_reduce_add_ps(v)
#define largest_of(v) _mm512_reduce_max_ps(v)
#define any_above(v, bound) _mm512_cmp_ps_mask(v, bound, _CMP_GT_OQ)
#define where_positive(v, other) _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, all(0), _CMP_GT_OQ), other)
#define first_of(v, count, other) _mm512_mask_blend_ps((__mmask16)((1u << (count)) - 1), other, v)
#define nearest(v) _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define power_of_two(v)                                                                                              \
    _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(127)), 23))
#else
typedef __m256 Vector;
#define load(from) _mm256_loadu_ps(from)
#define store(to, v) _mm256_storeu_ps(to, v)
#define all(number) _mm256_set1_ps(number)
#define multiply_add(a, b, c) _mm256_fmadd_ps(a, b, c)
#define larger(a, b) _mm256_max_ps(a, b)
#define smaller(a, b) _mm256_min_ps(a, b)
#define any_above(v, bound) _mm256_movemask_ps(_mm256_cmp_ps(v, bound, _CMP_GT_OQ))
#define where_positive(v, other) _mm256_and_ps(_mm256_cmp_ps(v, all(0), _CMP_GT_OQ), other)
#define first_of(v, count, other)                                                                                    \
    _mm256_blendv_ps(other, v, _mm256_castsi256_ps(_mm256_cmpgt_epi32(                                               \
                                   _mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))))
#define nearest(v) _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define power_of_two(v)                                                                                              \
    _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(127)), 23))

static inline float add_up(Vector v) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

static inline float largest_of(Vector v) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}
#endif

/* Turn WIDTH vectors: what was the place in a vector becomes the number of the vector. */
#if WIDTH == 16
static inline __attribute__((always_inline)) void turn(Vector v[WIDTH]) {
    Vector t[WIDTH];
#pragma GCC unroll 8
    for (int two = 0; two < WIDTH; two += 2) {
        t[two] = _mm512_unpacklo_ps(v[two], v[two + 1]);
        t[two + 1] = _mm512_unpackhi_ps(v[two], v[two + 1]);
    }
#define LOW(a, b) _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))
#define HIGH(a, b) _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))
#pragma GCC unroll 4
    for (int four = 0; four < WIDTH; four += 4) {
        v[four] = LOW(t[four], t[four + 2]);
        v[four + 1] = HIGH(t[four], t[four + 2]);
        v[four + 2] = LOW(t[four + 1], t[four + 3]);
        v[four + 3] = HIGH(t[four + 1], t[four + 3]);
    }
#undef LOW
#undef HIGH
    /* Now part p (of four numbers) of v[4 i + j] is what column 4 p + j has in rows 4 i to 4 i + 3. */
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        Vector even = _mm512_shuffle_f32x4(v[j], v[4 + j], 0x88), odd = _mm512_shuffle_f32x4(v[j], v[4 + j], 0xdd);
        Vector evens = _mm512_shuffle_f32x4(v[8 + j], v[12 + j], 0x88);
        Vector odds = _mm512_shuffle_f32x4(v[8 + j], v[12 + j], 0xdd);
        t[j] = _mm512_shuffle_f32x4(even, evens, 0x88);
        t[4 + j] = _mm512_shuffle_f32x4(odd, odds, 0x88);
        t[8 + j] = _mm512_shuffle_f32x4(even, evens, 0xdd);
        t[12 + j] = _mm512_shuffle_f32x4(odd, odds, 0xdd);
    }
#pragma GCC unroll 16
    for (int row = 0; row < WIDTH; row++) v[row] = t[row];
}
#else
static inline __attribute__((always_inline)) void turn(Vector v[WIDTH]) {
    Vector t[WIDTH];
#pragma GCC unroll 4
    for (int two = 0; two < WIDTH; two += 2) {
        t[two] = _mm256_unpacklo_ps(v[two], v[two + 1]);
        t[two + 1] = _mm256_unpackhi_ps(v[two], v[two + 1]);
    }
#pragma GCC unroll 2
    for (int four = 0; four < WIDTH; four += 4) {
        v[four] = _mm256_shuffle_ps(t[four], t[four + 2], 0x44);
        v[four + 1] = _mm256_shuffle_ps(t[four], t[four + 2], 0xee);
        v[four + 2] = _mm256_shuffle_ps(t[four + 1], t[four + 3], 0x44);
        v[four + 3] = _mm256_shuffle_ps(t[four + 1], t[four + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        t[j] = _mm256_permute2f128_ps(v[j], v[4 + j], 0x20);
        t[4 + j] = _mm256_permute2f128_ps(v[j], v[4 + j], 0x31);
    }
#pragma GCC unroll 8
    for (int row = 0; row < WIDTH; row++) v[row] = t[row];
}
#endif

/* e^x for x ≤ 0, to a unit or two in the last place; below -87 it is about 1e-38, and NaN stays NaN.
 *
 * x = n·ln 2 + r with a whole number n and |r| ≤ ln 2 / 2; then e^x = 2^n · e^r, and e^r is its series up to r^6, with
 * factors that spread the error over the interval. (larger and smaller return their second argument for NaN.) */
static inline Vector exponential(Vector x) {
    x = larger(all(-87.0f), x);
    Vector n = nearest(x * all(1.44269504f));
    Vector r = multiply_add(n, all(-0.693359375f), x);
    r = multiply_add(n, all(2.12194440e-4f), r);
    Vector series = all(1.3981999e-3f);
    series = multiply_add(series, r, all(8.3334519e-3f));
    series = multiply_add(series, r, all(4.1665795e-2f));
    series = multiply_add(series, r, all(1.6666665e-1f));
    series = multiply_add(series, r, all(0.5f));
    series = multiply_add(series, r, all(1.0f));
    series = multiply_add(series, r, all(1.0f));
    return series * power_of_two(n);
}
