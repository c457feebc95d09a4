"""Score a method of your own: a function from a subject and data to a number for each edge.

This one patches every edge, as exact patching does, and divides by the number of edges that the writer has.
"""

from collections import Counter

from tracr import lab
from tracr.lab.faithfulness import faithfulness
from tracr.lab.methods import MethodData, exact_patching, run_method


def my_method(subject, data):
    """Larger numbers say more important; the keys are pairs such as ("embed", "blocks.0.attn.0.q")."""
    change = exact_patching(subject, data)
    edges = Counter(writer for writer, _ in change)
    return {(writer, reader): value / edges[writer] for (writer, reader), value in change.items()}


case = lab.case("hist2")
pairs = case.pairs(64)
data = MethodData.of(pairs, case.metric(pairs))
truth = case.model.ground_truth.minimal(pairs=pairs)
for method in (my_method, "exact", "weight-norm", "random"):
    found = run_method(method, case.model, data)
    faith = faithfulness(case.model, data, found.scores)
    print(f"{method if isinstance(method, str) else 'mine':12}{truth.score(found.scores)}\n{'':12}{faith}")
