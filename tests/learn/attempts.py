"""Wrong attempts at each puzzle: mistakes that students make."""

from __future__ import annotations

SO_FAR = "so_far = select(indices, indices, <=);\n"
DEPTH = SO_FAR + 'depth = round((indices + 1) * aggregate(so_far, 1 if tokens == "(" else -1));\n'
ABOVE = """
bit = indicator(tokens == "1");
plus = aggregate(select(tokens, "+", ==), indices);
above = aggregate(select(indices, indices - plus - 1, ==), bit);
column = above + bit if indices > plus else 0;
"""
LEVELS = """
so_far = select(indices, indices, <=);
is_close = tokens in [")", "}"];
depth = round((indices + 1) * aggregate(so_far, -1 if is_close else 1));
level = depth + indicator(is_close);
number = selector_width(select(level, level, ==) and so_far);
partner = aggregate(select(level, level, ==) and select(number, number - 1, ==), tokens, "-");
"""

WRONG: dict[str, dict[str, str]] = {
    "shift_right": {
        "to the left": 'answer = aggregate(select(indices, indices + 1, ==), tokens, "-");',
        "no default": "answer = aggregate(select(indices, indices - 1, ==), tokens);",
        "keys and queries swapped": 'answer = aggregate(select(indices - 1, indices, ==), tokens, "-");',
        "all before": 'answer = aggregate(select(indices, indices, <), tokens, "-");',
        "around the end": "answer = aggregate(select(indices, (indices - 1) % length, ==), tokens);",
    },
    "first": {
        "the last": "answer = aggregate(select(indices, length - 1, ==), tokens);",
        "the second": 'answer = aggregate(select(indices, 1, ==), tokens, "a");',
        "the own token": "answer = aggregate(select(indices, indices, ==), tokens);",
        "a": 'answer = "a" if indices >= 0 else tokens;',
    },
    "reverse": {
        "off by one": 'answer = aggregate(select(indices, length - indices, ==), tokens, "a");',
        "unchanged": "answer = tokens;",
        "fixed length": 'answer = aggregate(select(indices, 5 - indices, ==), tokens, "a");',
        "ends only": """
last = aggregate(select(indices, length - 1, ==), tokens);
first = aggregate(select(indices, 0, ==), tokens);
answer = last if indices == 0 else (first if indices == length - 1 else tokens);
""",
    },
    "rotate": {
        "no wrapping": 'answer = aggregate(select(indices, indices + 1, ==), tokens, "-");',
        "to the right": "answer = aggregate(select(indices, (indices - 1) % length, ==), tokens);",
        "the last keeps its token": """
right = aggregate(select(indices, indices + 1, ==), tokens, "-");
answer = tokens if right == "-" else right;
""",
    },
    "count": {
        "own token": "answer = selector_width(select(tokens, tokens, ==));",
        "so far": SO_FAR + 'answer = selector_width(select(tokens, "a", ==) and so_far);',
        "share": 'answer = aggregate(full_s, indicator(tokens == "a"));',
        "whether": 'answer = has_focus(select(tokens, "a", ==));',
    },
    "share": {
        "of everything": 'answer = aggregate(full_s, indicator(tokens == "a"));',
        "without the position itself": 'answer = aggregate(select(indices, indices, <), indicator(tokens == "a"));',
        "count": SO_FAR + 'answer = selector_width(select(tokens, "a", ==) and so_far);',
        "booleans": SO_FAR + 'answer = aggregate(so_far, tokens == "a");',
    },
    "seen": {
        "itself": SO_FAR + "answer = has_focus(select(tokens, tokens, ==) and so_far);",
        "anywhere": "answer = selector_width(select(tokens, tokens, ==)) > 1;",
        "later": "answer = has_focus(select(tokens, tokens, ==) and select(indices, indices, >));",
        "any earlier token": "answer = has_focus(select(indices, indices, <));",
    },
    "histogram": {
        "so far": SO_FAR + "answer = selector_width(select(tokens, tokens, ==) and so_far);",
        "others": "answer = selector_width(select(tokens, tokens, ==)) - 1;",
        "a only": 'answer = count(tokens, "a");',
        "share": "answer = selector_width(select(tokens, tokens, ==)) / length;",
    },
    "parity": {
        "of the whole input": 'answer = count(tokens, "1") % 2;',
        "of the zeros": SO_FAR + 'answer = selector_width(select(tokens, "0", ==) and so_far) % 2;',
        "exactly one": SO_FAR + 'answer = indicator(selector_width(select(tokens, "1", ==) and so_far) == 1);',
        "not rounded": SO_FAR + "answer = aggregate(so_far, tokens_int) % 2;",
    },
    "palindrome": {
        "each position for itself": """
answer = aggregate(select(indices, length - 1 - indices, ==), tokens) == tokens;
""",
        "first and last": "answer = tokens[0] == tokens[-1];",
        "always": "answer = indices >= 0;",
        "some position": """
mirror = aggregate(select(indices, length - 1 - indices, ==), tokens);
answer = has_focus(select(mirror == tokens, True, ==));
""",
    },
    "largest": {
        "own digit": "answer = tokens_int;",
        "of the whole input": """
def reached(step) { return indicator(has_focus(select(tokens, step, >=))); }
answer = reached("1") + reached("2") + reached("3");
""",
        "of two": "answer = max(tokens_int, shift(tokens_int, 1, 0));",
        "mean": SO_FAR + "answer = aggregate(so_far, tokens_int);",
        "text": 'answer = "3" if contains(tokens, "3") else tokens;',
    },
    "squeeze": {
        "b stays in the way": """
place = selector_width(select(tokens, "b", !=) and select(indices, indices, <));
answer = aggregate(select(place, indices, ==), tokens, "-");
""",
        "one too far": SO_FAR
        + """
place = selector_width(select(tokens, "b", !=) and so_far);
answer = aggregate(select(place, indices, ==) and select(tokens, "b", !=), tokens, "-");
""",
        "in place": 'answer = tokens if tokens != "b" else "-";',
        "to the right": """
kept = select(tokens, "b", !=);
place = selector_width(kept and select(indices, indices, >));
answer = aggregate(select(place, indices, ==) and kept, tokens, "-");
""",
    },
    "sort": {
        "no ties": """
place = selector_width(select(tokens, tokens, <));
answer = aggregate(select(place, indices, ==), tokens, "0");
""",
        "descending": """
place = selector_width(select(tokens, tokens, >) or (select(tokens, tokens, ==) and select(indices, indices, <)));
answer = aggregate(select(place, indices, ==), tokens);
""",
        "ties counted twice": """
place = selector_width(select(tokens, tokens, <=)) - 1;
answer = aggregate(select(place, indices, ==), tokens, "0");
""",
        "unchanged": "answer = tokens;",
        "numbers too large": "answer = sort(tokens_int + 1, tokens_int);",
    },
    "as_frequent": {
        "histogram": "answer = selector_width(select(tokens, tokens, ==));",
        "positions": """
often = selector_width(select(tokens, tokens, ==));
answer = selector_width(select(often, often, ==));
""",
        "others only": """
often = selector_width(select(tokens, tokens, ==));
fresh = not has_focus(select(tokens, tokens, ==) and select(indices, indices, <));
answer = selector_width(select(often, often, ==) and select(fresh, True, ==) and select(tokens, tokens, !=));
""",
        "last positions so far": SO_FAR
        + """
often = selector_width(select(tokens, tokens, ==));
fresh = not has_focus(select(tokens, tokens, ==) and select(indices, indices, <));
answer = selector_width(select(often, often, ==) and select(fresh, True, ==) and so_far);
""",
    },
    "winner": {
        "first": "answer = tokens[0];",
        "no ties": """
often = selector_width(select(tokens, tokens, ==));
rank = selector_width(select(often, often, >));
answer = aggregate(select(rank, 0, ==), tokens, "-");
""",
        "latest": """
often = selector_width(select(tokens, tokens, ==));
better = select(often, often, >) or (select(often, often, ==) and select(indices, indices, >));
answer = aggregate(select(selector_width(better), 0, ==), tokens);
""",
        "rarest": """
often = selector_width(select(tokens, tokens, ==));
better = select(often, often, <) or (select(often, often, ==) and select(indices, indices, <));
answer = aggregate(select(selector_width(better), 0, ==), tokens);
""",
    },
    "dyck1": {
        "forgets": DEPTH + 'answer = "T" if depth == 0 else ("P" if depth > 0 else "F");',
        "sees the future": DEPTH
        + """
broken = has_focus(select(depth, 0, <));
answer = "F" if broken else ("T" if depth == 0 else "P");
""",
        "never broken": DEPTH + 'answer = "T" if depth == 0 else "P";',
        "only the end": DEPTH
        + """
broken = has_focus(so_far and select(depth, 0, <));
answer = "F" if broken else ("T" if aggregate(select(indices, length - 1, ==), depth) == 0 else "P");
""",
    },
    "induction": {
        "first time": SO_FAR
        + """
before = shift(tokens, 1, "-");
number = selector_width(select(before, before, ==) and so_far);
answer = aggregate(select(before, tokens, ==) and so_far and select(number, 1, ==), tokens, "-");
""",
        "previous token": 'answer = shift(tokens, 1, "-");',
        "all times": SO_FAR
        + """
before = shift(tokens, 1, "-");
answer = aggregate(select(before, tokens, ==) and so_far, tokens, "-");
""",
        "next time": 'answer = aggregate(select_next_identical(tokens), tokens, "-");',
        "the future too": """
before = shift(tokens, 1, "-");
number = selector_width(select(before, before, ==) and select(indices, indices, <=));
followers = selector_width(select(before, tokens, ==));
answer = aggregate(select(before, tokens, ==) and select(number, followers, ==), tokens, "-");
""",
    },
    "carries": {
        "neighbour only": 'answer = aggregate(select(indices, indices + 1, ==), indicator(tokens == "2"));',
        "any 2": 'answer = indicator(has_focus(select(tokens, "2", ==) and select(indices, indices, >)));',
        "carry out": """
decides = select(tokens, "1", !=);
number = selector_width(decides and select(indices, indices, <));
answer = aggregate(decides and select(number, number, ==), indicator(tokens == "2"));
""",
        "from the left": """
decides = select(tokens, "1", !=);
number = selector_width(decides and select(indices, indices, >=));
answer = aggregate(decides and select(number, number + 1, ==), indicator(tokens == "2"));
""",
    },
    "addition": {
        "no carries": ABOVE + "answer = column % 2;",
        "one step": ABOVE
        + """
carry = aggregate(select(indices, indices + 1, ==), indicator(column == 2));
answer = (column + carry) % 2;
""",
        "columns": ABOVE + "answer = column;",
        "copy": 'answer = indicator(tokens == "1");',
        "any carry": ABOVE
        + """
carry = indicator(has_focus(select(column, 2, ==) and select(indices, indices, >)));
answer = (column + carry) % 2;
""",
    },
    "dyck2": {
        "one kind": LEVELS
        + """
broken = has_focus(so_far and select(depth, 0, <));
answer = "F" if broken else ("T" if depth == 0 else "P");
""",
        "neighbours": LEVELS
        + """
wrong = is_close and (not (shift(tokens, 1, "-") + tokens in ["()", "{}"]));
broken = has_focus(so_far and select(wrong, True, ==));
answer = "F" if broken else ("T" if depth == 0 else "P");
""",
        "two counts": SO_FAR
        + """
def depth_of(a, b) { return round((indices + 1) * aggregate(so_far, indicator(tokens == a) - indicator(tokens == b))); }
round_ones = depth_of("(", ")");
curly_ones = depth_of("{", "}");
broken = has_focus(so_far and (select(round_ones, 0, <) or select(curly_ones, 0, <)));
answer = "F" if broken else ("T" if (round_ones == 0) and (curly_ones == 0) else "P");
""",
        "sees the future": LEVELS
        + """
wrong = is_close and (not (partner + tokens in ["()", "{}"]));
broken = has_focus(select(wrong, True, ==));
answer = "F" if broken else ("T" if depth == 0 else "P");
""",
        "forgets": LEVELS
        + """
wrong = is_close and (not (partner + tokens in ["()", "{}"]));
answer = "F" if wrong else ("T" if depth == 0 else "P");
""",
    },
}
"""By puzzle and mistake."""

RIGHT: dict[str, list[tuple[str, list[object]]]] = {
    "shift_right": [("abcab", ["-", "a", "b", "c", "a"]), ("c", ["-"])],
    "first": [("bcab", ["b"] * 4)],
    "reverse": [("abcc", ["c", "c", "b", "a"])],
    "rotate": [("abcc", ["b", "c", "c", "a"]), ("a", ["a"])],
    "count": [("abca", [2, 2, 2, 2]), ("bc", [0, 0])],
    "share": [("abca", [1, 1 / 2, 1 / 3, 1 / 2])],
    "seen": [("abcba", [False, False, False, True, True])],
    "histogram": [("abcaa", [3, 1, 1, 3, 3])],
    "parity": [("10110", [1, 1, 0, 1, 1])],
    "palindrome": [("abcba", [True] * 5), ("aaba", [False] * 4)],
    "largest": [("10213", [1, 1, 2, 2, 3])],
    "squeeze": [("abcba", ["a", "c", "a", "-", "-"]), ("bb", ["-", "-"])],
    "sort": [("3120", ["0", "1", "2", "3"]), ("212", ["1", "2", "2"])],
    "as_frequent": [("abbc", [2, 1, 1, 2]), ("abc", [3, 3, 3]), ("aab", [1, 1, 1])],
    "winner": [("abcbc", ["b"] * 5), ("cab", ["c"] * 3)],
    "dyck1": [("(())", ["P", "P", "P", "T"]), ("())(", ["P", "T", "F", "F"])],
    "induction": [("abcab", ["-", "-", "-", "b", "c"]), ("aaba", ["-", "a", "-", "b"])],
    "carries": [("0112", [1, 1, 1, 0]), ("120", [1, 0, 0])],
    "addition": [("11+01", [0, 0, 1, 0, 0]), ("1+1", [0, 1, 0]), ("0110+0111", [0, 0, 0, 0, 0, 1, 1, 0, 1])],
    "dyck2": [("({})", ["P", "P", "P", "T"]), ("({)}", ["P", "P", "F", "F"])],
}
"""Inputs and answers by hand."""
