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
#define first_of(count) ((__mmask16)((count) >= WIDTH ? 0xffff : (1u << (count)) - 1))
/* The first `count` of WIDTH floats that lie `stride` floats apart, then zeros. */
#define pick(from, stride, count)                                                                                    \
    _mm512_mask_i32gather_ps(                                                                                        \
        _mm512_setzero_ps(), first_of(count),                                                                        \
        _mm512_mullo_epi32(_mm512_set1_epi32(stride),                                                                \
                           _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)),                 \
        from, 4)
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
#define pick(from, stride, count)                                                                                    \
    _mm256_mask_i32gather_ps(                                                                                        \
        _mm256_setzero_ps(), from,                                                                                   \
        _mm256_mullo_epi32(_mm256_set1_epi32(stride), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),                    \
        _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))), \
        4)
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
