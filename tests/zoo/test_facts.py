"""The table of facts belongs to the programs as they are; names, aliases and specs lead to them."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import pytest

import tracr
from tests.tiers import in_turn
from tests.zoo.test_zoo import model_of, run
from tracr import lab, zoo
from tracr.datasets import meaning
from tracr.lab import roles_of, selecting
from tracr.zoo import aliases
from tracr.zoo.facts import DIFFICULTIES

ROOT = Path(__file__).parents[2]
CERTIFIED_HERE = ("hist", "frac_prevs", "induction_head", "maximum", "two_sum", "rule_110")


@pytest.mark.parametrize("name", zoo.names())
def test_the_facts_are_those_of_the_program(name: str) -> None:
    """Its meaning, sizes and roles; `python benchmarks/zoo_facts.py NAME` measures a changed program again."""
    facts, model = zoo.facts(name), model_of(name)
    assert facts.meaning == meaning(model.program)
    assert (facts.layers, facts.d_model, facts.parameters) == (model.n_layers, model.d_model, model.n_parameters)
    assert facts.roles == {one.component: one.roles for one in roles_of(model).values()}
    heads = [node for node in facts.roles if ".attn." in node]
    assert facts.heads == max((sum(node.startswith(f"blocks.{n}.") for node in heads) for n in range(99)), default=0)


@pytest.mark.parametrize("name", CERTIFIED_HERE)
def test_recorded_verdicts(name: str) -> None:
    """A sample; the slow tier checks every program."""
    facts = zoo.facts(name)
    assert facts.rejections[1] == zoo.load(name).certify().reason


@pytest.mark.slow
@pytest.mark.parametrize(("name", "level"), in_turn(zoo.names(), (0, 1, 2)))
def test_all_recorded_verdicts(name: str, level: int) -> None:
    """Each program at one level in turn; at all of them with TRACR_LONG, as every night."""
    assert zoo.facts(name).rejections[level] == zoo.load(name, level).certify().reason


def test_difficulty_is_the_rule() -> None:
    """By layers and components alone; each difficulty has many programs."""
    groups: dict[str, list[str]] = {}
    for name in zoo.names():
        facts = zoo.facts(name)
        fits = [
            word
            for word, most in DIFFICULTIES.items()
            if (facts.layers <= most[0], facts.components <= most[1]) == (True, True)
        ]
        assert facts.difficulty == (fits[0] if fits else "hard")
        assert facts.components == len([one for one in facts.roles if one.startswith("blocks.")])
        groups.setdefault(facts.difficulty, []).append(name)
    assert {*groups} == {"easy", "medium", "hard"}
    assert min(len(names) for names in groups.values()) > 15


def test_twins_are_those_of_the_results() -> None:
    """docs/natural/results.json has every trained twin."""
    rows = json.loads((ROOT / "docs" / "natural" / "results.json").read_text(encoding="utf-8"))
    trained = {name: facts.twins for name in zoo.names() if (facts := zoo.facts(name)).twins}
    assert {*trained} == {row["program"] for row in rows}
    assert sum(one.trained for one in trained.values()) == len(rows)
    assert sum(one.admitted for one in trained.values()) == sum(row["admitted"] for row in rows)


def test_aliases_lead_to_programs() -> None:
    """No alias is a name, and every one is found as it is written."""
    assert not {*aliases.ALIASES} & {*zoo.names()}
    assert {*aliases.OTHER_NAMES} <= {*zoo.names()}
    for alias, name in aliases.ALIASES.items():
        assert zoo.get(alias).name == name
    suggested = {*aliases.SAME_CASES.values(), *aliases.SIMILAR_WORDS.values(), *chain(*aliases.SIMILAR_CASES.values())}
    assert suggested <= {*zoo.names()}
    assert not {*aliases.SAME_CASES} & {*aliases.SIMILAR_CASES}


@pytest.mark.parametrize(
    ("guessed", "name"),
    [
        ("ioi", "indirect_object"),
        ("greater_than", "greater_than_first"),
        ("Modular Addition", "add_mod"),
        ("tracr-xproportion", "frac_prevs"),
        ("tracr-reverse", "reverse"),
        ("make_shuffle_dyck", "shuffle_dyck"),
        ("make_check_palindrome", "is_palindrome"),
        ("compute_median", "median"),
        ("compute_word_lengths", "word_length"),
        ("Sort-Unique", "sort_unique"),
        ("greaterthan", "greater_than_first"),
        ("case_3", "frac_prevs"),
        ("InterpBench case 39", "frac_prevs"),
        ("case-7", "hist"),
        ("interpbench/case_14", "count"),
        ("interpbench:3", "frac_prevs"),
        ("reverse_sequence", "reverse"),
        ("string_reversal", "reverse"),
        ("sort_list", "sort"),
        ("sort_task", "sort"),
        ("palindromes", "is_palindrome"),
        ("prev_token_head", "shift_by"),
        ("previous_token_heads", "shift_by"),
        ("ioi_circuit", "indirect_object"),
        ("induction_circuits", "induction_head"),
        ("docstring_task", "docstring"),
        ("Dyck-1-PTF", "dyck1"),
        ("hist_nobos", "hist"),
        ("find_max", "maximum"),
        ("cumulative_sum", "sum_so_far"),
        ("make_check_prime", "is_prime"),
        ("copy_task", "identity"),
        ("bracket_classifier", "shuffle_dyck"),
        ("reverse_each_word", "reverse_words"),
        ("vowel_consonant_ratio", "vowel_ratio"),
        ("case_41", "absolute"),
        ("Case00085", "square"),
        ("case 124", "all_equal"),
        ("make_absolute", "absolute"),
        ("make_cube_each_element", "cube"),
        ("make_next_prime", "prime_from"),
        ("make_swap_consecutive", "swap_pairs"),
        ("make_count_less_than", "count_smaller"),
        ("make_invert_if_sorted", "reverse_if_sorted"),
        ("clamp", "clip"),
        ("mod_addition", "add_mod"),
        ("assoc_recall", "associative_recall"),
        ("sort_ascending", "sort"),
    ],
)
def test_names_that_users_of_other_benchmarks_guess(guessed: str, name: str) -> None:
    assert zoo.get(guessed).name == name


@pytest.mark.parametrize(
    ("guessed", "hint"),
    [
        ("copy_nxt", "did you mean copy_next"),
        ("flip_halves", "did you mean swap_halves"),
        ("majority", "did you mean is_majority or majority_of_two"),
        ("3", "InterpBench's case 3 is frac_prevs here"),
        ("case_18", "InterpBench's case 18 is not in the zoo; similar: frequency_class"),
        ("case_11", "InterpBench's case 11 is not in the zoo; similar: same_length_words"),
        ("interpbench/38", "InterpBench's case 38 is not in the zoo; similar: alternates"),
        ("case_100", "benchmarks/third_party runs its cases from a checkout"),
        ("token_frequency_classifier", "did you mean frequency_class"),
        ("trend_analysis", "did you mean trend"),
        ("ioi_next_token", "did you mean indirect_object"),
        ("spam_detection", "did you mean spam_so_far"),
        ("token_abbreviation", "did you mean abbreviate"),
        ("emoji_sentiment", "did you mean emoticon_mood"),
        ("check_alternation", "did you mean alternates"),
        ("cascading_effect", "did you mean cascade"),
        ("name_mover_head", "did you mean indirect_object"),
        ("in_context_learning", "did you mean induction_head"),
        ("bigram_model", "did you mean skip_bigram or bigram_count"),
        ("subtraction", "did you mean difference"),
        ("is_sorted", "did you mean sorted_so_far"),
        ("mode", "did you mean most_freq"),
        ("parentheses", "did you mean shuffle_dyck"),
        ("threshold", "did you mean binarize"),
        ("argmin", "did you mean argmax"),
        ("case_86", "InterpBench's case 86 is not in the zoo; similar: is_power_of_two"),
        ("s5", "zoo.names\\(\\) list all"),
        ("indices", "zoo.names\\(\\) list all"),
        ("zzz", "zoo.names\\(\\) list all"),
        (f"case_{'9' * 5000}", "zoo.names\\(\\) list all"),
    ],
)
def test_names_that_are_only_similar_are_refused(guessed: str, hint: str) -> None:
    """An alias means the same task; anything else is a suggestion."""
    with pytest.raises(tracr.TracrError, match=f"the zoo has no program(.|\\n)*{hint}"):
        zoo.get(guessed)
    with pytest.raises(tracr.TracrError, match="name must be a string"):
        zoo.get(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("zoo:nope@level9", "the zoo has no program 'nope'"),
        ("zoo:reverse@level9", "'@level9' is not a level(.|\n)*write zoo:reverse@level0 or"),
        ("zoo:reverse@2", "'@2' is not a level(.|\n)*zoo:reverse@level2"),
        ("zoo:reverse@", "'@' is not a level"),
        ("zoo:", "names no program(.|\n)*write zoo:NAME"),
        ("zoo:revrse@level1", "did you mean reverse"),
    ],
)
def test_bad_specs_are_refused_with_what_to_write(spec: str, problem: str) -> None:
    """In Python and on the command line."""
    with pytest.raises(tracr.TracrError, match=problem):
        tracr.load(spec)
    with pytest.raises(tracr.TracrError, match=problem):
        run("info", spec)


def test_specs_load_models() -> None:
    """Level 1 if none is written; the command line takes a level in one place."""
    for level in (0, 1, 2):
        model = tracr.load(f"zoo:induction_head@level{level}")
        assert isinstance(model, tracr.CompiledModel)
        assert (model.options.level, model.options.causal, model("abcab")) == (level, True, list("---bc"))
        assert json.loads(run("info", f"zoo:induction_head@level{level}", "--json"))["level"] == level
    default = tracr.load("zoo:hist")
    assert isinstance(default, tracr.CompiledModel)
    assert default.options.level == 1
    assert "leave out --level 1" in run("info", "zoo:hist@level2", "--level", "1")
    assert json.loads(run("info", "zoo:hist@level2", "--level", "2", "--json"))["level"] == 2
    with pytest.raises(tracr.FormatError, match="more than 10"):
        tracr.load("zoo:hist", max_parameters=10)


def test_the_command_shows_the_facts() -> None:
    shown = json.loads(run("zoo", "ioi", "--json"))
    assert (shown["name"], shown["difficulty"], shown["certified_levels"]) == ("indirect_object", "medium", [0, 1, 2])
    assert shown["roles"]["embed"] == ["embed"]
    text = run("zoo", "zoo:hist")
    assert "at level 0, 1, 2, in float32" in text
    assert "4 of 4 admitted" in text
    assert "histogram" in text


def test_other_names_have_the_sizes_of_their_programs_everywhere() -> None:
    """Cases of the laboratory and teachers of twins, which may differ in size from the zoo's models."""
    assert lab.case("histogram").vocab == lab.case("hist").vocab != zoo.get("hist").vocab
    assert [one.name for one in selecting.select_cases(["ioi"])] == ["indirect_object"]
    assert len(selecting.select_cases(["parity"])) > 1  # a tag and an alias
    assert "twins learn from have level 1; write zoo:hist" in run("twin", "zoo:hist@level2", "-o", "unused")
