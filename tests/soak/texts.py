"""Text of every kind that somebody may type, paste or pipe into a translator."""

import random
import unicodedata

# What has broken programs before. Each is one line or becomes one.
HARD = {
    "nothing": "",
    "white space": " \t\u00a0\u2003 ",
    "control characters": "".join(map(chr, [*range(32), *range(127, 160)])),
    "NUL inside": "a dog\0sees the small cat",
    "right to left": "مرحبا بالعالم שלום עולם",
    "direction marks": "a \u202edog\u202c \u2066sees\u2069 \u200f the cat",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪",
    "mixed scripts": "Der dog 狗 собака כלב sees จ naïve ½ ﬁ ㎡",
    "many marks": "a" + "\u0301\u0327" * 500,
    "marks alone": "\u0301" * 99,
    "surrogates": "a\ud83d dog \udc00",
    "no characters": "\ufffe\uffff\U0010ffff",
    "other line ends": "a\rdog\x0bsees\x0cthe\x85small\u2028cat\u2029",
    "zero width": "\ufeff\u200b\u200d\u2060 a\u00addog",
    "looks like our marks": "<s> </s> <pad> <unk> ▁▁ ⁇ ▅ <0x41> (S XX )S",
    "terminal codes": "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "mark-up": "<script>alert(1)</script> %s {0} $(reboot) ; -- --help",
    "a long word": "Donaudampfschifffahrt" * 20,
}
# A megabyte in one line: some are nothing once normalised, most are far too long.
LARGE = {
    "letters": "a" * 2**20,
    "words": "a dog " * 175_000,
    "spaces": " " * 2**20,
    "NULs": "\0" * 2**20,
    "emoji": "💡" * 2**18,
    "right to left": "مرحبا " * 95_000,
    "our mark of a space": "\u2581" * 2**18,
}


def any_line(draw: random.Random, longest=60):
    """Characters from anywhere in Unicode, the unassigned and the halves included."""
    kinds = (
        lambda: chr(draw.randrange(0x110000)),
        lambda: chr(draw.randrange(0x3000)),
        lambda: chr(draw.randrange(128)),
        lambda: draw.choice(" \t\0\u0301\u200d\u202e▁⁇"),
    )
    text = "".join(draw.choice(kinds)() for _ in range(draw.randrange(longest)))
    return unicodedata.normalize("NFD", text) if draw.random() < 0.2 else text
