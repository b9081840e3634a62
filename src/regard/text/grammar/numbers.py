"""Numbers in the words of both languages."""

ENGLISH_NUMBERS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety""".split()  # noqa: SIM905 - reads better so
GERMAN_NUMBERS = """
null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn
achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig""".split()  # noqa: SIM905


def english_number(number: int) -> str:
    """Write a number below a hundred in English words."""
    if number < 20:
        return ENGLISH_NUMBERS[number]
    tens, unit = divmod(number, 10)
    return f"{ENGLISH_NUMBERS[18 + tens]}-{ENGLISH_NUMBERS[unit]}" if unit else ENGLISH_NUMBERS[18 + tens]


def german_number(number: int) -> str:
    """Write a number below a hundred in German words, units before tens: `einundzwanzig`."""
    if number < 20:
        return GERMAN_NUMBERS[number]
    tens, unit = divmod(number, 10)
    spoken = "ein" if unit == 1 else GERMAN_NUMBERS[unit]
    return f"{spoken}und{GERMAN_NUMBERS[18 + tens]}" if unit else GERMAN_NUMBERS[18 + tens]
