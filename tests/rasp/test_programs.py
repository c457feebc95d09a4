"""The library of programs, each against a plain Python oracle that knows nothing of selectors."""

import itertools
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracr.compiler import lib
from tracr.errors import ExpressionError
from tracr.rasp import causal_eval, programs, rasp
from tracr.rasp.programs import EXAMPLES
from tracr.rasp.traversal import topological

letters = st.lists(st.sampled_from("abc"), max_size=8)
integers = st.lists(st.integers(-5, 5), max_size=8)


@given(letters)
def test_length(xs: list[str]) -> None:
    """The number of tokens, everywhere."""
    assert lib.make_length()(xs) == [len(xs)] * len(xs)


@given(letters)
def test_causal_length_counts_the_tokens_so_far(xs: list[str]) -> None:
    """Under the causal mask the width of everything is the position plus one."""
    assert causal_eval.evaluate(lib.make_length(), xs) == list(range(1, len(xs) + 1))


@given(letters)
def test_reverse(xs: list[str]) -> None:
    """The values backwards, of tokens and of other s-ops."""
    assert lib.make_reverse(rasp.tokens)(xs) == xs[::-1]
    assert lib.make_reverse(rasp.indices)(xs) == list(range(len(xs)))[::-1]
    assert lib.make_reverse(lib.make_reverse(rasp.tokens))(xs) == xs


@given(letters)
def test_hist(xs: list[str]) -> None:
    """How often each position's token occurs."""
    counts = Counter(xs)
    assert lib.make_hist()(xs) == [counts[x] for x in xs]


@given(letters)
def test_hist_bos(xs: list[str]) -> None:
    """The histogram of what comes after the BOS, which itself gets 0."""
    counts = Counter(xs)
    assert lib.make_hist_bos()(["^", *xs]) == [0, *(counts[x] for x in xs)]


@given(letters)
def test_hist_bos_without_a_bos(xs: list[str]) -> None:
    """The first token is taken for the BOS, and its own occurrences come out one short."""
    counts = Counter(xs)
    assert lib.make_hist_bos()(xs) == [counts[x] - (x == xs[0]) for x in xs]


@given(letters)
def test_hist2(xs: list[str]) -> None:
    """How many different tokens have the frequency of this one."""
    counts = Counter(xs)
    of_frequency = Counter(counts.values())
    assert lib.make_hist2()(xs) == [of_frequency[counts[x]] for x in xs]


@given(st.lists(st.sampled_from(["a", "b", None]), max_size=8))
def test_has_prev(xs: list[Any]) -> None:
    """Whether the value stands further left, `None` too; the same causally."""
    expected = [x in xs[:i] for i, x in enumerate(xs)]
    assert lib.make_has_prev(rasp.tokens)(xs) == expected
    assert causal_eval.evaluate(lib.make_has_prev(rasp.tokens), xs) == expected


@given(letters, st.sampled_from("abcd"))
def test_count(xs: list[str], token: str) -> None:
    """How often the token occurs, at every position, 0 for one that never does."""
    assert lib.make_count(rasp.tokens, token)(xs) == [xs.count(token)] * len(xs)


@given(st.lists(st.sampled_from(["a", None]), max_size=5))
def test_count_where_there_is_none(xs: list[Any]) -> None:
    """`None` is not the token, and can itself be counted."""
    assert lib.make_count(rasp.tokens, "a")(xs) == [xs.count("a")] * len(xs)
    assert lib.make_count(rasp.tokens, None)(xs) == [xs.count(None)] * len(xs)


@given(letters, st.integers(0, 5))
def test_count_less_freq(xs: list[str], n: int) -> None:
    """How many positions hold a token that occurs at most n times."""
    expected = sum(count for count in Counter(xs).values() if count <= n)
    assert lib.make_count_less_freq(n)(xs) == [expected] * len(xs)


@given(st.lists(st.sampled_from("abcx"), max_size=12))
def test_frac_prevs(xs: list[str]) -> None:
    """The exact fraction of x so far, bidirectionally and causally."""
    program = lib.make_frac_prevs((rasp.tokens == "x").named("is_x"))
    expected = [float(Fraction(xs[: i + 1].count("x"), i + 1)) for i in range(len(xs))]
    assert program(xs) == expected
    assert causal_eval.evaluate(program, xs) == expected


@given(letters, st.integers(-9, 9))
def test_shift_by(xs: list[str], offset: int) -> None:
    """The value `offset` positions earlier, `None` outside the input, in both directions."""
    expected = [xs[i - offset] if 0 <= i - offset < len(xs) else None for i in range(len(xs))]
    assert lib.shift_by(offset, rasp.tokens)(xs) == expected


@given(st.lists(st.sampled_from("ab"), max_size=8), st.lists(st.sampled_from("ab"), min_size=1, max_size=4))
def test_detect_pattern(xs: list[str], pattern: list[str]) -> None:
    """True exactly where the pattern ends; `None` at the first len(pattern) - 1 positions."""
    n = len(pattern)
    expected = [xs[i - n + 1 : i + 1] == pattern if i >= n - 1 else None for i in range(len(xs))]
    assert lib.detect_pattern(rasp.tokens, pattern)(xs) == expected
    assert causal_eval.evaluate(lib.detect_pattern(rasp.tokens, pattern), xs) == expected


def test_detect_pattern_in_another_s_op() -> None:
    """The pattern may be one of any values, in any s-op."""
    assert lib.detect_pattern(lib.make_hist(), (1, 2))("abbc") == [None, True, False, False]


def test_detect_pattern_needs_a_pattern() -> None:
    """An empty pattern would end everywhere and nowhere."""
    with pytest.raises(ExpressionError, match="empty pattern"):
        lib.detect_pattern(rasp.tokens, "")


@given(letters)
def test_induction(xs: list[str]) -> None:
    """What stood behind the last earlier occurrence of the same token; the same causally."""
    expected: list[str | None] = []
    followers: dict[str, str] = {}
    for i, x in enumerate(xs):
        if i:
            followers[xs[i - 1]] = x
        # "aa": at the second position the token that followed the first is the second itself.
        expected.append(followers.get(x))
    assert lib.make_induction()(xs) == expected
    assert causal_eval.evaluate(lib.make_induction(), xs) == expected


@given(st.lists(st.integers(-50, 50), unique=True, max_size=8))
def test_sort_unique(xs: list[int]) -> None:
    """Different keys put the values in order, keys and values from different s-ops too."""
    assert lib.make_sort_unique(rasp.tokens, rasp.tokens)(xs) == sorted(xs)
    assert lib.make_sort_unique(rasp.indices, -rasp.tokens)(xs) == sorted(range(len(xs)), key=lambda i: -xs[i])


@given(integers)
def test_sort_is_stable(xs: list[int]) -> None:
    """Equal keys are allowed, and keep the order of their positions."""
    program = lib.make_sort(rasp.indices, rasp.tokens, max_seq_len=8, min_key=1)
    assert program(xs) == sorted(range(len(xs)), key=lambda i: xs[i])


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.9]), max_size=10))
def test_sort_with_a_small_gap_between_keys(xs: list[float]) -> None:
    """min_key is the smallest gap between keys: a smaller number is right too."""
    for min_key in (0.09, 0.01):
        assert lib.make_sort(rasp.tokens, rasp.tokens, max_seq_len=10, min_key=min_key)(xs) == sorted(xs)


@pytest.mark.parametrize("wrong", [{"max_seq_len": 0, "min_key": 1}, {"max_seq_len": 3, "min_key": 0}])
def test_sort_refuses_parameters_that_sort_nothing(wrong: dict[str, int]) -> None:
    """A key gap or length of 0 is refused."""
    with pytest.raises(ExpressionError, match="must be"):
        lib.make_sort(rasp.tokens, rasp.tokens, **wrong)


@given(letters)
def test_sort_freq(xs: list[str]) -> None:
    """Most frequent first, equally frequent ones in the order of their positions."""
    counts = Counter(xs)
    assert lib.make_sort_freq(8)(xs) == sorted(xs, key=lambda x: -counts[x])


@given(st.lists(st.text("ab", max_size=2), max_size=8))
def test_sort_composite(xs: list[str]) -> None:
    """Keys of any type that has an order; equal ones keep the order of their positions."""
    assert lib.make_sort_composite(rasp.tokens, rasp.tokens)(xs) == sorted(xs)
    by_token = sorted(range(len(xs)), key=lambda i: xs[i])
    assert lib.make_sort_composite(rasp.indices, rasp.tokens)(xs) == by_token


@given(letters, st.sampled_from([None, "-"]))
def test_most_freq(xs: list[str], filler: str | None) -> None:
    """Every token once, by falling frequency, then by first occurrence; the rest is filled up."""
    expected = [token for token, _ in Counter(xs).most_common()]
    assert lib.make_most_freq(filler)(xs) == expected + [filler] * (len(xs) - len(expected))


@given(st.lists(st.sampled_from("()a"), max_size=12))
def test_pair_balance(xs: list[str]) -> None:
    """Opened minus closed over the tokens so far: 0 exactly where they balance, with the right sign elsewhere."""
    result = lib.make_pair_balance(rasp.tokens, "(", ")")(xs)
    depths = [xs[:i].count("(") - xs[:i].count(")") for i in range(1, len(xs) + 1)]
    assert result == pytest.approx([depth / i for i, depth in enumerate(depths, 1)])
    assert [(value > 0) - (value < 0) for value in result] == [(d > 0) - (d < 0) for d in depths]


def shuffle_dyck(xs: list[str], pairs: Sequence[Sequence[str]]) -> bool:
    """Balanced if no depth goes negative and all end at zero."""
    for opened, closed in pairs:
        depth = 0
        for x in xs:
            depth += (x == opened) - (x == closed)
            if depth < 0:
                return False
        if depth:
            return False
    return True


@given(st.lists(st.sampled_from("(){}"), max_size=10) | st.permutations("(){}()"))
def test_shuffle_dyck(xs: list[str]) -> None:
    """Each pair by itself never closes too early and closes all it opened; other tokens do not matter."""
    for pairs in (["()"], ["()", "{}"], ["{}", "()", "[]"]):
        result = lib.make_shuffle_dyck(pairs)(xs)
        assert result == [shuffle_dyck(xs, pairs)] * len(xs)
        assert all(isinstance(value, bool) for value in result)
    assert lib.make_shuffle_dyck2()(xs) == lib.make_shuffle_dyck(["()", "{}"])(xs)


@pytest.mark.parametrize("pairs", [[], ["("], ["()", "[]x"]])
def test_shuffle_dyck_needs_pairs(pairs: list[str]) -> None:
    """Anything but one or more pairs is refused."""
    with pytest.raises(ExpressionError, match="at least one pair"):
        lib.make_shuffle_dyck(pairs)


def dyck(xs: list[str], pairs: Sequence[Sequence[str]]) -> list[str]:
    """T, P or F for every prefix, with a stack."""
    opener_of = {closed: opened for opened, closed in pairs}
    stack: list[str] = []
    dead = False
    answers = []
    for x in xs:
        if x in opener_of.values():
            stack.append(x)
        elif x in opener_of and not dead:
            dead = not stack or stack.pop() != opener_of[x]
        answers.append("F" if dead else "P" if stack else "T")
    return answers


@st.composite
def nearly_balanced(draw: st.DrawFn) -> list[str]:
    """Balanced brackets with other tokens between them, and perhaps one token changed: chance alone gives few."""
    xs: list[str] = []
    for _ in range(draw(st.integers(0, 5))):
        place = draw(st.integers(0, len(xs)))
        inside = draw(st.integers(place, len(xs)))
        opened, closed = draw(st.sampled_from([("(", ")"), ("{", "}")]))
        balanced = [*xs[:place], opened, *xs[place:inside], closed, *xs[inside:]]
        # Around a whole stretch only, so that pairs nest.
        xs = balanced if dyck(xs[place:inside], ["()", "{}"])[-1:] in ([], ["T"]) else [*xs, opened, closed]
        if draw(st.booleans()):
            xs.insert(draw(st.integers(0, len(xs))), "a")
    if len(xs) and draw(st.booleans()):
        xs[draw(st.integers(0, len(xs) - 1))] = draw(st.sampled_from("(){}a"))
    return xs


@given(st.lists(st.sampled_from("(){}a"), max_size=10) | nearly_balanced())
def test_dyck(xs: list[str]) -> None:
    """T where a stack is empty, P where it is not, F from the first mismatch on; the same causally."""
    for pairs in (["()"], ["()", "{}"], ["{}", "()", "[]"]):
        program = lib.make_dyck(pairs)
        assert program(xs) == dyck(xs, pairs)
        assert causal_eval.evaluate(program, xs) == dyck(xs, pairs)
    assert lib.make_dyck2()(xs) == dyck(xs, ["()", "{}"])


@given(st.lists(st.sampled_from("()a"), max_size=12) | nearly_balanced())
def test_dyck1(xs: list[str]) -> None:
    """One pair, whatever its tokens are; others do not matter."""
    for pair in ("()", "{}"):
        assert lib.make_dyck1(pair)(xs) == dyck(xs, [pair])
        assert causal_eval.evaluate(lib.make_dyck1(pair), xs) == dyck(xs, [pair])


def closer(xs: list[str], pairs: Sequence[Sequence[str]]) -> list[str | None]:
    """The partner of the innermost open bracket after every prefix, with a stack."""
    partner = {pair[0]: pair[1] for pair in pairs}
    stack: list[str] = []
    answers: list[str | None] = []
    dead = False
    for x in xs:
        if x in partner:
            stack.append(partner[x])
        elif x in partner.values() and not dead:
            dead = not stack or stack.pop() != x
        answers.append(stack[-1] if stack and not dead else None)
    return answers


@given(st.lists(st.sampled_from("(){}a"), max_size=10) | nearly_balanced())
def test_closer(xs: list[str]) -> None:
    """What closes the innermost open bracket, of one pair or two; nothing once the brackets do not nest."""
    for pairs in (["()"], ["()", "{}"]):
        program = lib.make_closer(pairs)
        assert program(xs) == closer(xs, pairs)
        assert causal_eval.evaluate(program, xs) == closer(xs, pairs)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_counter(xs: list[int]) -> None:
    """The last number plus the last step, which is 1 at first; nothing outside the numbers there are."""
    following = [xs[0] + 1, *(now + (now - before) for before, now in itertools.pairwise(xs))]
    expected = [number if 0 <= number <= 9 else None for number in following]
    assert lib.make_counter(9)(xs) == expected
    assert causal_eval.evaluate(lib.make_counter(9), xs) == expected


def test_nesting_tells_dyck_from_shuffle_dyck() -> None:
    """Crossing pairs are balanced each by itself, but do not nest."""
    assert lib.make_shuffle_dyck2()("({)}")[-1] is True
    assert lib.make_dyck2()("({)}")[-1] == "F"


@pytest.mark.parametrize("pairs", [[], ["("], ["()", "[]x"]])
def test_dyck_needs_pairs(pairs: list[str]) -> None:
    """Anything but one or more pairs is refused."""
    with pytest.raises(ExpressionError, match="at least one pair"):
        lib.make_dyck(pairs)


def test_dyck1_needs_a_pair() -> None:
    """One pair of two tokens."""
    with pytest.raises(ExpressionError, match="make_dyck1 needs at least one pair"):
        lib.make_dyck1("(")


@pytest.mark.parametrize("pairs", [["(("], ["()", "(]"], ["()", ")("]])
def test_dyck_needs_different_tokens(pairs: list[str]) -> None:
    """A token that opens and closes, or belongs to two pairs, has no level."""
    with pytest.raises(ExpressionError, match="each token in one place of one pair"):
        lib.make_dyck(pairs)


@given(integers, st.integers(1, 6))
def test_nary_sequencemap(xs: list[int], n: int) -> None:
    """f of n values at the same position, in the order given."""
    sops = [rasp.tokens * k + rasp.indices for k in range(n)]
    program = lib.make_nary_sequencemap(lambda *values: values, *sops)
    assert program(xs) == [tuple(x * k + i for k in range(n)) for i, x in enumerate(xs)]


@pytest.mark.parametrize("place", range(4))
def test_nary_sequencemap_and_none(place: int) -> None:
    """One `None` among the values, wherever it stands, makes the result `None`."""
    sops: list[rasp.SOp] = [rasp.indices] * 4
    sops[place] = rasp.tokens
    assert lib.make_nary_sequencemap(lambda *values: sum(values), *sops)([None, 5]) == [None, 8]


def test_nary_sequencemap_needs_an_s_op() -> None:
    """Of no s-ops there is no map; of foreign objects neither."""
    with pytest.raises(ExpressionError, match="at least one s-op"):
        lib.make_nary_sequencemap(max)
    with pytest.raises(ExpressionError, match="must be an s-op"):
        lib.make_nary_sequencemap(max, rasp.tokens, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("program", "names"),
    [
        (lib.make_frac_prevs((rasp.tokens == "x").named("is_x")), {"is_x", "prevs", "frac_prevs"}),
        (lib.make_sort_unique(rasp.tokens, rasp.tokens), {"smaller", "target_pos", "sel_sort", "sort"}),
        (
            lib.make_pair_balance(rasp.tokens, "(", ")"),
            {"bools_open", "bools_close", "opens", "closes", "pair_balance"},
        ),
        (lib.make_shuffle_dyck2(), {"any_negative", "has_neg", "all_zero", "last_zero", "shuffle_dyck2"}),
        (lib.make_hist2(), {"hist", "first", "same_count_reprs", "hist2"}),
    ],
)
def test_programs_use_the_paper_s_names(program: rasp.SOp, names: set[str]) -> None:
    """A reader of the paper recognises its variables in the compiled model."""
    assert names <= {expr.name for expr in topological([program])}


def test_what_is_averaged_is_numerical() -> None:
    """Values that get averaged, and their means, are marked numerical as in the paper."""
    for program in (EXAMPLES["frac_prevs"].program, EXAMPLES["pair_balance"].program):
        assert rasp.is_numerical(program)
    by_name = {expr.name: expr for expr in topological([lib.make_shuffle_dyck2()])}
    for name in ("opens", "closes", "bools_open", "any_negative", "has_neg"):
        assert rasp.is_numerical(by_name[name])


@pytest.mark.parametrize("name", EXAMPLES)
@settings(max_examples=25)
@given(data=st.data())
def test_examples_run_on_their_own_vocabulary(name: str, data: st.DataObject) -> None:
    """Every example evaluates on inputs of its vocabulary up to its length (different tokens where it needs them)."""
    example = EXAMPLES[name]
    tokens = st.sampled_from(example.vocab)
    xs = data.draw(st.lists(tokens, max_size=example.max_seq_len, unique=name == "sort_unique"))
    assert len(example.program(xs)) == len(xs)
    assert example.description


def test_the_library_is_one_list_under_two_paths() -> None:
    """tracr.compiler.lib offers the programs of tracr.rasp.programs, the same objects."""
    functions = [name for name in programs.__all__ if name not in ("EXAMPLES", "Example")]
    assert sorted(lib.__all__) == sorted(functions)
    assert all(getattr(lib, name) is getattr(programs, name) for name in functions)


def test_every_program_has_an_example() -> None:
    """Each maker of the library has its entry in EXAMPLES, so a vocabulary, a length and a description.

    `make_dyck` is there as dyck1 and dyck2.
    """
    made = {name.removeprefix("make_") for name in lib.__all__} - {"dyck"}
    assert made == set(EXAMPLES)
