"""What differs between a translation and its reference: words, marked where the other has none or another."""

from difflib import SequenceMatcher

from regard.report.markup import Markup, element, join

_MOST_WORDS = 400  # comparing takes time that grows with the square


def mark_differences(translation: str, reference: str) -> tuple[Markup, Markup]:
    """Return both texts with the words marked that the other one does not have in that place.

    White space between words is written as one space.
    """
    ours, theirs = translation.split(), reference.split()
    if max(len(ours), len(theirs)) > _MOST_WORDS:
        return join(translation), join(reference)
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    left: list[Markup] = []
    right: list[Markup] = []
    for kind, start, end, from_, to in matcher.get_opcodes():
        for side, words, name in ((left, ours[start:end], "ours"), (right, theirs[from_:to], "theirs")):
            if words:
                text = " ".join(words)
                side.append(join(text) if kind == "equal" else element("mark", text, class_=name))
    return Markup(" ".join(left)), Markup(" ".join(right))
