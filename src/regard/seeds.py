"""Seeds: every random number is a function of a few whole numbers, such as (seed, step, piece)."""

_MASK = (1 << 64) - 1


def mix(*numbers: int) -> int:
    """Return a seed of 63 bits that depends on all of the numbers and on their order (SplitMix64's finaliser)."""
    state = 0
    for number in numbers:
        state = (state + number + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state >> 1
