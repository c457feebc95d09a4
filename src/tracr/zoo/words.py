"""Tokens that are words: tables of words, and what words have in common."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tracr.rasp import rasp
from tracr.rasp.programs.conditions import Condition
from tracr.rasp.rasp import Comparison, SOp
from tracr.zoo.entry import at_each, prefixes, task
from tracr.zoo.pieces import before, count, count_true, everything, is_one_of, share

tokens, indices = rasp.tokens, rasp.indices

WORDS = ("i", "am", "at", "sea", "you", "rest")
STRINGS = Condition(
    "strings", lambda tokens: all(isinstance(token, str) for token in tokens), "write numbers in quotation marks"
)
CONSONANTS = Condition(
    "strings with a consonant each",
    lambda tokens: all(isinstance(token, str) and {*token} - {*"aeiou"} for token in tokens),
    "leave out words of vowels alone",
)
VOWELS = "aeiou"


def _mapped(name: str, function: Any) -> SOp:
    """A table of tokens."""
    return rasp.Map(function, tokens).named(name)


@task(
    "abcd",
    6,
    shown="abca",
    tags="words",
    says="the token itself",
    answers=lambda xs: list(xs),
)
def identity() -> SOp:
    """A table that changes nothing."""
    return _mapped("identity", lambda token: token)


@task(
    WORDS,
    5,
    shown=("you", "rest", "at", "sea"),
    tags="words language",
    says="whether the word has an 'odd' or an 'even' number of letters",
    answers=lambda xs: ["odd" if len(x) % 2 else "even" for x in xs],
    tokens=STRINGS,
)
def word_parity() -> SOp:
    """A table of words."""
    return _mapped("word_parity", lambda word: ("even", "odd")[len(word) % 2])


@task(
    ("am", "at", "i", "sea", "you", "rest"),
    5,
    shown=("i", "am", "at", "sea"),
    tags="words language counting",
    says="how many words of the input have as many letters as this one",
    answers=at_each(lambda xs, i: sum(len(x) == len(xs[i]) for x in xs)),
    tokens=STRINGS,
)
def same_length_words() -> SOp:
    """A histogram of lengths."""
    letters = _mapped("letters", len)
    return count(letters, letters).named("same_length_words")


@task(
    ("am", "at", "sea", "rest", "tree"),
    5,
    shown=("at", "sea", "rest"),
    tags="words language numerical",
    says="the number of vowels of the word divided by the number of its consonants",
    answers=lambda xs: [(n := sum(map(x.count, VOWELS))) / (len(x) - n) for x in xs],
    tokens=CONSONANTS,
)
def vowel_ratio() -> SOp:
    """A table of words, with numbers as values."""

    def ratio(word: str) -> float:
        vowels = [letter for letter in word if letter in VOWELS]
        return len(vowels) / (len(word) - len(vowels))

    return rasp.numerical(_mapped("vowel_ratio", ratio))


@task(
    WORDS,
    5,
    shown=("you", "rest", "at", "sea"),
    tags="words language",
    says="the word with every second letter as a capital letter, the first one included",
    answers=lambda xs: ["".join(letter.lower() if n % 2 else letter.upper() for n, letter in enumerate(x)) for x in xs],
    tokens=STRINGS,
)
def alternating_capitals() -> SOp:
    """A table of words."""

    def capitals(word: str) -> str:
        return "".join(word[n].upper() if n in range(0, len(word), 2) else word[n].lower() for n in range(len(word)))

    return _mapped("alternating_capitals", capitals)


@task(
    (":)", ":D", ":(", ":|", "hi"),
    5,
    shown=("hi", ":D", ":("),
    tags="words language",
    says="the mood of an emoticon: 'positive', 'negative', or 'neutral', as words are",
    answers=lambda xs: [{")": "positive", "D": "positive", "(": "negative"}.get(x[-1], "neutral") for x in xs],
    tokens=STRINGS,
)
def emoticon_mood() -> SOp:
    """A table of emoticons."""

    def mood(token: str) -> str:
        if token.endswith(")") or token.endswith("D"):
            return "positive"
        return "negative" if token.endswith("(") else "neutral"

    return _mapped("emoticon_mood", mood)


@task(
    ("am", "on", "sea", "not", "the"),
    5,
    shown=("the", "sea", "not", "on"),
    tags="words language",
    says="each word written backwards, except 'the'",
    answers=lambda xs: [x if x == "the" else x[::-1] for x in xs],
    tokens=STRINGS,
)
def reverse_words() -> SOp:
    """A table of words with an exception."""
    return _mapped("reverse_words", lambda word: "".join(reversed(word)) if word != "the" else word)


@task(
    ("buy", "win", "hello", "friend"),
    5,
    shown=("hello", "win", "friend"),
    tags="words language",
    says="spam detection: whether 'buy' or 'win' occurs so far",
    answers=prefixes(lambda xs: "buy" in xs or "win" in xs),
    causal=True,
)
def spam_so_far() -> SOp:
    """The share of keywords so far is not 0."""
    keyword = _mapped("keyword", lambda word: word in ("buy", "win"))
    return (share(everything(), keyword) > 0).named("spam_so_far")


@task(
    WORDS,
    5,
    shown=("you", "rest", "at", "sea"),
    tags="words language",
    says="the abbreviation of the word: its first two letters and a full stop, if it has more than two",
    answers=lambda xs: [x[:2] + "." * (len(x) > 2) for x in xs],
    tokens=STRINGS,
)
def abbreviate() -> SOp:
    """A table of words."""
    return _mapped("abbreviate", lambda word: word if len(word) < 3 else word[0] + word[1] + ".")


@task(
    "abc",
    5,
    shown="abca",
    tags="words",
    says="the token once at the first position, twice at the second, and so on",
    answers=lambda xs: ["".join(x for _ in range(n)) for n, x in enumerate(xs, 1)],
    tokens=STRINGS,
)
def cascade() -> SOp:
    """A table of tokens and positions."""
    return rasp.SequenceMap(lambda token, i: token * (i + 1), tokens, indices).named("cascade")


@task(
    "ab_",
    6,
    shown="_a_b_",
    tags="words",
    says="the input with '*' in place of each underscore that has letters on both sides, somewhere",
    answers=at_each(
        lambda xs, i: "*" if xs[i] == "_" and "".join(xs[:i]).strip("_") and "".join(xs[i:]).strip("_") else xs[i]
    ),
)
def fill_gaps() -> SOp:
    """Counts the letters so far, and all letters."""
    letter = _mapped("letter", lambda token: token != "_")
    chosen = rasp.Select(letter, True, Comparison.EQ).named("letters")
    so_far = rasp.Select(indices, indices, Comparison.LEQ).named("so_far")
    past = rasp.SelectorWidth((chosen & so_far).named("letters_so_far")).named("past")
    coming = (count_true(letter).named("all_letters") - past).named("coming")
    between = rasp.SequenceMap(lambda n, m: n > 0 and m > 0, past, coming).named("between")
    return rasp.SequenceMap(lambda token, gap: "*" if token == "_" and gap else token, tokens, between).named(
        "fill_gaps"
    )


@task(
    "ab01",
    6,
    shown="a0b1b",
    tags="words comparison",
    says="whether letters and digits have alternated so far",
    answers=prefixes(lambda xs: all(x.isdigit() != y.isdigit() for x, y in pairwise(xs))),
    causal=True,
    tokens=STRINGS,
)
def alternates() -> SOp:
    """Compares each kind with the one before; the share of equal ones is 0."""
    digit = is_one_of("0123456789")
    repeated = rasp.SequenceMap(lambda x, y: x == y, digit, before(digit)).named("repeated")
    return (share(everything(), repeated) == 0).named("alternates")
