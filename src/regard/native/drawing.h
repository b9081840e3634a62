/* Dropout's random numbers: a function of (seed, site, row, column), so that nothing has to be kept for the way back. */

#define GOLDEN 0x9e3779b97f4a7c15u /* 2^64 over the golden ratio: steps that never come close to each other */

/* The last part of Steele's SplitMix64: neighbouring numbers become numbers that have nothing to do with each other. */
static inline uint64_t scrambled(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Draw sixteen bits for each of a row's `width` numbers. A site is a place in the model where numbers are dropped. */
static void draw_row(uint64_t seed, int site, int64_t row, int width, int16_t *bits) {
    uint64_t key = scrambled(scrambled(seed + GOLDEN * (site + 1)) + GOLDEN * (row + 1));
    for (int four = 0; four < width / 4; four++) {
        uint64_t drawn = scrambled(key + GOLDEN * (four + 1));
        memcpy(bits + 4 * four, &drawn, sizeof drawn);
    }
}
