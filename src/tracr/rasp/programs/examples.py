"""One ready-made small program of each kind, with the vocabularies and inputs it is right for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from tracr.errors import InputError, VocabularyError
from tracr.rasp import rasp
from tracr.rasp.programs import brackets, counting, ordering, patterns
from tracr.rasp.programs.conditions import (
    ANY,
    BITS,
    COUNTABLE,
    DIFFERENT,
    NUMBERS,
    ORDERED,
    OWN_START,
    Condition,
)
from tracr.rasp.rasp import SOp
from tracr.values import Value

__all__ = ["EXAMPLES", "Example"]

Maker = Callable[[Sequence[Value], int], SOp]


@dataclass(frozen=True)
class Example:
    """A program with the vocabulary and the maximum length (BOS not counted) it is usually compiled for.

    The program does what `description` says on inputs over `vocab` up to `max_seq_len` that fulfil `inputs`.
    `made_for` gives it for another vocabulary and length.

    Args:
        shown: an input to show it on.
        make: makes the program for a vocabulary and a length; if `None`, `program` is right for all of them.
        tokens: the condition on vocabularies.
        inputs: the condition on inputs.
        backward: whether no position looks ahead; the description then holds with causal attention too.
    """

    program: SOp
    vocab: tuple[Value, ...]
    max_seq_len: int
    description: str
    shown: tuple[Value, ...] = ()
    make: Maker | None = None
    tokens: Condition = ANY
    inputs: Condition = ANY
    backward: bool = False

    def made_for(self, vocab: Iterable[Value], max_seq_len: int) -> Self:
        """The example for this vocabulary and length; raises an error if the task is not defined for them.

        >>> EXAMPLES["sort"].made_for([0.5, 1, 7], 6).program([7, 0.5, 7, 1, 0.5, 1])
        [0.5, 0.5, 1, 1, 7, 7]
        """
        vocab = tuple(vocab)
        if not self.tokens.holds(vocab):
            raise VocabularyError(
                f"this program ({self.description}) needs a vocabulary of {self.tokens.text}", hint=self.tokens.hint
            )
        program = self.program if self.make is None else self.make(vocab, max_seq_len)
        return replace(self, program=program, vocab=vocab, max_seq_len=max_seq_len)

    def check(self, tokens: Sequence[Value]) -> None:
        """Refuse an input on which the program does not do what its description says.

        >>> EXAMPLES["sort_unique"].check([3, 1, 3])
        Traceback (most recent call last):
        tracr.errors.InputError: this program (sorts tokens that all differ) needs inputs with no token twice
          hint: sort and sort_composite sort equal tokens too
        """
        if not self.inputs.holds(tokens):
            raise InputError(
                f"this program ({self.description}) needs inputs with {self.inputs.text}", hint=self.inputs.hint
            )

    @property
    def right_for(self) -> str:
        """The conditions on vocabularies and inputs, in words; empty if it is right for all.

        >>> EXAMPLES["hist"].right_for, EXAMPLES["sort_unique"].right_for
        ('', 'only numbers or only strings; inputs with no token twice')
        """
        inputs = f"inputs with {self.inputs.text}" if self.inputs.text else ""
        return "; ".join(filter(None, [self.tokens.text, inputs]))


def _counting(letters: tuple[Value, ...]) -> dict[str, Example]:
    tokens, shown = rasp.tokens, tuple("abaca")
    is_x = (tokens == "x").named("is_x")
    return {
        "length": Example(counting.make_length(), letters, 5, "the length of the input", shown),
        "hist": Example(counting.make_hist(), letters, 5, "how often each token occurs", shown),
        "hist_bos": Example(
            counting.make_hist_bos(),
            ("^", *letters),
            5,
            "how often each token occurs, 0 for the first, which occurs once",
            tuple("^abac"),
            inputs=OWN_START,
        ),
        "hist2": Example(counting.make_hist2(), letters, 5, "how many different tokens occur as often as each", shown),
        "has_prev": Example(
            counting.make_has_prev(tokens), letters, 5, "whether the token occurred before", shown, backward=True
        ),
        "count": Example(counting.make_count(tokens, "a"), letters, 5, "how many 'a' there are", shown),
        "count_less_freq": Example(
            counting.make_count_less_freq(1), letters, 5, "how many tokens occur only once", shown
        ),
        "frac_prevs": Example(
            counting.make_frac_prevs(is_x), tuple("abcx"), 5, "the fraction of 'x' so far", tuple("xacx"), backward=True
        ),
    }


def _sort(vocab: Sequence[Value], max_seq_len: int) -> SOp:
    gap = ordering.smallest_gap(vocab, max_seq_len)
    return ordering.make_sort(rasp.tokens, rasp.tokens, max_seq_len=max_seq_len, min_key=gap)


def _sort_freq(vocab: Sequence[Value], max_seq_len: int) -> SOp:
    return ordering.make_sort_freq(max_seq_len)


def _ordering(letters: tuple[Value, ...]) -> dict[str, Example]:
    tokens, numbers = rasp.tokens, (1, 2, 3, 4)
    unique = ordering.make_sort_unique(tokens, tokens)
    composite = ordering.make_sort_composite(tokens, tokens)
    return {
        "reverse": Example(ordering.make_reverse(tokens), letters, 5, "the input backwards", tuple("abc")),
        "sort_unique": Example(
            unique, numbers, 4, "sorts tokens that all differ", (3, 1, 4, 2), tokens=ORDERED, inputs=DIFFERENT
        ),
        "sort": Example(
            _sort(numbers, 4), numbers, 4, "sorts numbers, equal ones allowed", (3, 1, 2, 1), _sort, NUMBERS
        ),
        "sort_composite": Example(
            composite, letters, 4, "sorts anything with an order, equal ones allowed", tuple("caba"), tokens=ORDERED
        ),
        "sort_freq": Example(
            _sort_freq(letters, 4), letters, 4, "the tokens, most frequent first", tuple("abcb"), _sort_freq
        ),
        "most_freq": Example(
            ordering.make_most_freq(), letters, 4, "each token once, most frequent first", tuple("abcb")
        ),
    }


def _brackets() -> dict[str, Example]:
    one, two = tuple("()a"), tuple("(){}")
    balance = brackets.make_pair_balance(rasp.tokens, "(", ")")
    closer = brackets.make_closer(["()", "{}"])
    right = "whether '(' and ')' are balanced"
    prefix = "T, P, F: '()' are balanced so far, can be, cannot be"
    nested = "T, P, F: '()' and '{}' nest so far, can, cannot"
    closing = "the bracket that closes the innermost open one"
    return {
        "pair_balance": Example(balance, one, 5, "fraction of '(' minus that of ')'", tuple("(()a)"), backward=True),
        "shuffle_dyck": Example(brackets.make_shuffle_dyck(["()"]), one, 5, right, tuple("(())")),
        "shuffle_dyck2": Example(
            brackets.make_shuffle_dyck2(), two, 4, "whether '()' and '{}' are balanced", tuple("({)}")
        ),
        "dyck1": Example(brackets.make_dyck1(), one, 5, prefix, tuple("(()))"), backward=True),
        "dyck2": Example(brackets.make_dyck2(), two, 6, nested, tuple("({})}"), backward=True),
        "closer": Example(closer, two, 4, closing, tuple("({}"), backward=True),
    }


def _counter(vocab: Sequence[Value], max_seq_len: int) -> SOp:
    return patterns.make_counter(max((token for token in vocab if isinstance(token, int)), default=0))


def _patterns(letters: tuple[Value, ...]) -> dict[str, Example]:
    tokens, digits = rasp.tokens, tuple(range(7))
    last_three = (tokens, patterns.shift_by(1, tokens), patterns.shift_by(2, tokens))
    majority = patterns.make_nary_sequencemap(lambda x, y, z: int(x + y + z >= 2), *last_three).named("majority")
    following = "what followed the same token the last time"
    counting_on = "the next number, in the steps of the last two"
    most = "the majority of the last three bits"
    return {
        "shift_by": Example(patterns.shift_by(1, tokens), letters, 5, "the token before", tuple("abc"), backward=True),
        "detect_pattern": Example(
            patterns.detect_pattern(tokens, "ab"), letters, 5, "where 'ab' ends", tuple("abcab"), backward=True
        ),
        "induction": Example(patterns.make_induction(), letters, 5, following, tuple("abcab"), backward=True),
        "counter": Example(_counter(digits, 5), digits, 5, counting_on, (0, 2, 4), _counter, COUNTABLE, backward=True),
        "nary_sequencemap": Example(majority, (0, 1), 5, most, (1, 0, 1, 1), tokens=BITS, backward=True),
    }


_LETTERS = tuple("abc")

EXAMPLES: dict[str, Example] = _counting(_LETTERS) | _ordering(_LETTERS) | _brackets() | _patterns(_LETTERS)
