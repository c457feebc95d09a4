# ruff: noqa
# mypy: ignore-errors
"""tracr-check (prototype): proves that a weight file computes a tabulated program on every input.

Shares no code with the compiler: numpy and the standard library only.  Reads a saved folder (model.json,
tables.safetensors, weights.safetensors) and a certificate of hints; nothing in the certificate is trusted.

State.  A token position holds x = sum over variables v of E_v[value of v at the position], where E_v is a table of boxes
[value, dimension] (lo, hi), and g: everything in the box is a multiple of g (inf for exact zeros, 0 for unknown).  Variables
are the program's s-ops, 'T' (token), 'I' (position), '1' (constant), and head counts ('c0.1').  BOS is a state of one row;
PAD a state with a row for each position.
"""
import itertools, json, math, struct, sys, time
import numpy as np

INF = math.inf
TINY = 2.0**-126  # what is smaller may be flushed to zero
class Reject(Exception): pass
def need(ok, why):
    if not ok: raise Reject(why)

# ------------------------------------------------------------------ arithmetic model
class Format:
    """p: bits of partial sums; ps: bits of what is stored; rexp: relative error of exp; zero: exp(-zero) is 0 (None: it leaks)."""
    def __init__(self, name, p, ps, rexp, zero, leak_at=100.0, cast=None, copy=0.0):
        self.copy = copy * 2.0**-p  # relative error where one key has all the weight: 0 if exp(0) = 1 and nothing else is done to it
        self.name, self.p, self.ps, self.u, self.us = name, p, ps, 2.0**-p, 2.0**-ps
        self.rexp, self.zero, self.cast = rexp * 2.0**-p, zero, cast
        self.theta = zero if zero is not None else leak_at
    def leak(self, keys):  # weight that goes to what lies theta below the largest
        return 0.0 if self.zero is not None else (keys + 2) * math.exp(-self.theta) * 1.01
    def gamma(self, t): return t * self.u / (1 - t * self.u) if np.isscalar(t) else t * self.u / (1 - t * self.u)

def _bf16(a):
    b = np.ascontiguousarray(a, np.float32).view(np.uint32).astype(np.uint64)
    b = (b + 0x7FFF + ((b >> 16) & 1)) >> 16 << 16
    return b.astype(np.uint32).view(np.float32).astype(np.float64)
FORMATS = {
    "float32": Format("float32", 24, 24, 8, 104.0, cast=lambda a: a.astype(np.float32).astype(np.float64)),
    "float32-leak": Format("float32-leak", 24, 24, 8, None, 87.0, cast=lambda a: a.astype(np.float32).astype(np.float64)),
    "float32-fused": Format("float32-fused", 24, 24, 8, None, 87.0, cast=lambda a: a.astype(np.float32).astype(np.float64), copy=16),
    "float64": Format("float64", 53, 53, 8, None, 100.0, cast=lambda a: a.astype(np.float64)),
    "bfloat16": Format("bfloat16", 8, 8, 8, 104.0, cast=_bf16),
    "bfloat16/f32": Format("bfloat16/f32", 24, 8, 8, 104.0, cast=_bf16),
    "float16/f32": Format("float16/f32", 24, 11, 8, 104.0, cast=lambda a: a.astype(np.float16).astype(np.float64)),
}

def grid(a):
    """The largest power of two that divides each number; inf for 0."""
    m, e = np.frexp(np.asarray(a, float))
    i = (np.abs(m) * 2.0**53).astype(np.int64)
    return np.where(i == 0, INF, np.ldexp((i & -i).astype(float), e - 53))
def bits(a):
    """How many bits numbers have."""
    a = np.abs(np.asarray(a, float)); return np.where(a == 0, 0, np.frexp(np.where(a == 0, 1.0, a / np.where(a == 0, 1.0, grid(a))))[1])
def natural(lo, hi, bits):
    """What numbers of so many bits in a range are multiples of: exact where it is a point, by size where its sign is known."""
    least = np.where((lo > 0) | (hi < 0), np.minimum(np.abs(lo), np.abs(hi)), 0.0)
    _, e = np.frexp(least)
    return np.where(lo == hi, grid(lo), np.where(least > 0, np.ldexp(1.0, e - bits), 0.0))

# ------------------------------------------------------------------ files
def tensors(path):
    raw = open(path, "rb").read(); n = struct.unpack("<Q", raw[:8])[0]
    kinds = {"F64": "<f8", "F32": "<f4", "I32": "<i4", "I8": "i1"}
    return {k: np.frombuffer(raw, kinds[v["dtype"]], offset=8 + n + v["data_offsets"][0], count=math.prod(v["shape"])).reshape(v["shape"])
            for k, v in json.loads(raw[8:8 + n]).items() if k != "__metadata__"}
def value(v):
    if isinstance(v, dict):
        (k, x), = v.items()
        return tuple(map(value, x)) if k == "tuple" else (k, json.dumps(x))
    return v
def isnum(v): return isinstance(v, (int, float))

# ------------------------------------------------------------------ the program
class Program:
    def __init__(self, folder):
        d = json.load(open(f"{folder}/model.json")); tab = tensors(f"{folder}/tables.safetensors"); p = d["program"]
        self.n, self.V = d["options"]["max_seq_len"], len(d["options"]["vocab"])
        need(not d["options"]["causal"], "causal models are not covered")
        self.lengths, self.outputs, self.slices = p["lengths"], p["outputs"], d["outputs"]
        self.sops = {s["id"]: s for s in p["sops"]}; self.sel = {s["id"]: s for s in p["selectors"]}
        for i, s in self.sops.items():
            dom = s["domain"]; s["table"] = tab.get(f"sops.{i}")
            need(dom["kind"] == "finite", f"{s['label']} is an interval")
            s["values"] = [value(v) for v in dom["values"]]
            s["index"] = {v: c for c, v in reversed(list(enumerate(s["values"])))}
            s["num"] = np.array([float(v) if isnum(v) else np.nan for v in s["values"]])
        for i, s in self.sel.items(): s["table"] = tab.get(f"selectors.{i}")
        self.assumed, self.sum_of, self.shaped = set(), {}, {}
    def define(self, aux):
        """Definitions that extend the program: pairs of s-ops, widths of selectors, sums of 0 and 1 over selectors."""
        for i, d in ((int(i), d) for i, d in aux.items()):
            need(i not in self.sops, "a definition hides an s-op"); kind = d["kind"]
            if kind == "pair":
                a, b = (len(self.sops[x]["values"]) for x in d["of"])
                op, values, table = dict(kind="pair_lookup", fst=d["of"][0], snd=d["of"][1]), list(range(a * b)), np.arange(a * b).reshape(a, b)
            elif kind == "width": op, values, table = dict(kind="width", selector=d["selector"]), list(range(self.n + 1)), None
            elif kind == "sum":
                z = self.sops[d["of"]]["op"]; need(z["kind"] == "aggregation" and set(self.sops[z["value"]]["values"]) <= {0, 1}, "sums of 0 and 1 only")
                op, values, table = dict(kind="sum", of=d["of"], selector=z["selector"], value=z["value"]), list(range(self.n + 1)), None
                self.sum_of[d["of"]] = i
            else: raise Reject(f"no definition {kind}")
            self.sops[i] = dict(id=i, label=f"{kind} {d.get('of', d.get('selector'))}", op=op, values=values, index={v: v for v in values}, num=np.array(values, float), table=table, aux=True)
    def parts(self, z):
        """The sum and the width an aggregate is the quotient of, where they are defined."""
        if z not in self.sum_of: return None
        sel = self.sops[z]["op"]["selector"]
        w = [i for i, s in self.sops.items() if s.get("aux") and s["op"]["kind"] == "width" and s["op"]["selector"] == sel]
        return (self.sum_of[z], w[0]) if w else None
    def size(self, v):
        return {"T": self.V, "I": self.n, "1": 1}.get(v) or (self.n + 1 if isinstance(v, str) else len(self.sops[v]["values"]))
    def num(self, v):
        return np.arange(float(self.n + 1)) if isinstance(v, str) else self.sops[v]["num"]
    def inputs(self, i):
        op = self.sops[i]["op"]
        return {"lookup": lambda: [op["inner"]], "pair_lookup": lambda: [op["fst"], op["snd"]],
                "linear": lambda: [t for t, _ in op["terms"]]}.get(op["kind"], lambda: [])()
    def leaf(self, i):
        k = self.sops[i]["op"]["kind"]
        return {"tokens": "T", "indices": "I", "positions": "I"}.get(k)
    def computable(self, i, have, seen=None):
        if i in have: return True
        k = self.sops[i]["op"]["kind"]
        if k == "constant": return True
        if self.leaf(i): return self.leaf(i) in have
        if self.parts(i) and all(p in have for p in self.parts(i)): return True
        ins = self.inputs(i)
        return bool(ins) and all(self.computable(j, have) for j in ins)
    def leaves(self, i, have):
        """Variables to add so that an s-op is a function of them and of those there are."""
        if self.computable(i, have): return set()
        if self.leaf(i): return {self.leaf(i)}
        ins = self.inputs(i)
        return set().union(*(self.leaves(j, have) for j in ins)) if ins else {i}
    def snap(self, i, x):
        num = self.sops[i]["num"]; order = np.argsort(np.where(np.isnan(num), INF, num), kind="stable")
        order = order[: int(np.isfinite(num).sum())]; v = num[order]
        at = order[np.searchsorted((v[1:] + v[:-1]) / 2, np.nan_to_num(x))]
        off = np.abs(num[at] - x) > 1e-9 * np.maximum(1, np.abs(x))
        none = self.sops[i]["index"].get(None, -1)
        return np.where(np.isnan(x), none, np.where(off, -2, at))
    def codes(self, i, env):
        """Codes of an s-op from those of variables at the same position; negative where the program is not defined."""
        if i in env: return env[i]
        s = self.sops[i]; op = s["op"]; k = op["kind"]
        if k == "constant": r = np.zeros(len(next(iter(env.values()))) if env else 1, int)
        elif k in ("tokens", "indices"): r = env[self.leaf(i)]
        elif k == "positions": r = s["table"][env["I"]]
        elif k == "lookup":
            a = self.codes(op["inner"], env); r = np.where(a < 0, -1, s["table"][a])
        elif k == "pair_lookup":
            a, b = self.codes(op["fst"], env), self.codes(op["snd"], env)
            r = np.where((a < 0) | (b < 0), -1, s["table"][a, b])
        elif k == "linear":
            parts = [(self.codes(t, env), f, t) for t, f in op["terms"]]
            r = self.snap(i, op["constant"] + sum(f * self.sops[t]["num"][c] for c, f, t in parts))
            for c, _, _ in parts: r = np.where(c < 0, -1, r)
        elif self.parts(i):
            S, w = (env[p] for p in self.parts(i)); need(isnum(value(op["default"])), "the default of a quotient is no number")
            r = self.snap(i, np.where(w == 0, float(op["default"]), S / np.maximum(w, 1))); r = np.where(S > w, -1, r)  # no sum of 0 and 1 exceeds the count
        else: raise Reject(f"{s['label']} is not known here")
        if (r == -2).any(): self.assumed.add(f"cells of {s['label']} marked unreached, or sums outside its values")
        env[i] = r
        return r
    def length_like(self, i):
        op = self.sops[i]["op"]
        return op["kind"] == "length" or (op["kind"] == "width" and self.trivial(op["selector"]))
    def trivial(self, s): return self.sel[s].get("table") is not None and (self.sel[s]["table"] == 1).all()
    def literals(self, s):
        e = self.sel[s]
        return [s] if "keys" in e else [x for p in e["parts"] for x in self.literals(p)]
    def selected(self, s, envq, envk):
        """[query, key] truth of a selector on joint values; negative cells (the predicate raises) count as not defined."""
        e = self.sel[s]
        if "keys" in e:
            t = e["table"]
            def side(i, env, axis):
                if self.computable(i, env): return self.codes(i, env)
                need((t == t.take([0], axis)).all(), f"selector {e['label']} compares what the head does not read")
                return np.zeros(len(next(iter(env.values()))) if env else 1, int)
            q, k = side(e["queries"], envq, 0), side(e["keys"], envk, 1)
            return t[np.ix_(q, k)] == 1, t[np.ix_(q, k)] >= 0
        (a, ok), *rest = [self.selected(p, envq, envk) for p in e["parts"]]
        for b, fine in rest: a, ok = (a & b if e["kind"] == "and" else a | b), ok & fine
        return (~a if e["kind"] == "not" else a), ok
    # facts about the program alone, each a small lemma
    def shapes(self):
        L = range(self.lengths[0], self.lengths[1] + 1)
        return np.concatenate([np.arange(l) for l in L]), np.concatenate([np.full(l, l) for l in L])
    def by_shape(self, i):
        """The codes of an s-op at every (position, length), if nothing else decides them."""
        if i not in self.shaped: self.shaped[i] = self._by_shape(i)
        return self.shaped[i]
    def _by_shape(self, i):
        pos, length = self.shapes(); env = {"I": pos}
        for j, s in self.sops.items():
            if self.length_like(j):
                place = {x: c for c, x in enumerate(s["num"].tolist())}; L = range(self.lengths[0], self.lengths[1] + 1)
                need(all(l in place for l in L), "lengths"); env[j] = np.array([place[l] for l in L])[length - L[0]]
        found = self.codes(i, env) if self.computable(i, env) else None
        return found if found is not None and (found >= 0).all() else None
    def function_of(self, i, j):
        """Whether s-op i is an elementwise function of s-op j."""
        return self.computable(i, {j})
    def distinct(self, i):
        """No two positions of an input hold one value."""
        c = self.by_shape(i)
        if c is not None:
            pos, length = self.shapes(); return all(len(set(c[length == l])) == l for l in set(length))
        op = self.sops[i]["op"]
        if op["kind"] == "pair_lookup":  # a table that fixes a distinct operand
            t = self.sops[i]["table"]
            for axis, j in ((0, op["fst"]), (1, op["snd"])):
                rows = [set(r[r >= 0].ravel()) for r in np.moveaxis(t, axis, 0)]
                if sum(map(len, rows)) == len(set().union(*rows)) and self.distinct(j): return True
        return op["kind"] == "width" and self.order(op["selector"]) in (True, "positions")
    def order(self, s):
        """True / 'positions' if the selector totally orders positions (distinct keys, or u then position); else the ordered s-op or None."""
        e = self.sel[s]
        def total(t):
            n = len(t); d = t.diagonal()
            return t.shape == (n, n) and t.min() >= 0 and (d == d[0]).all() and ((t + t.T)[~np.eye(n, dtype=bool)] == 1).all() and len(set(t.sum(1).tolist())) == n
        if "keys" in e:
            if e["keys"] != e["queries"] or not total(e["table"]): return None
            return True if self.distinct(e["keys"]) else ("on", e["keys"])
        if e["kind"] == "or":  # u < u'  or  (u = u' and i < i')
            for a, b in (e["parts"], e["parts"][::-1]):
                A, B = self.sel[a], self.sel[b]
                if "keys" in A and B.get("kind") == "and" and all("keys" in self.sel[x] for x in B["parts"]):
                    for x, y in (B["parts"], B["parts"][::-1]):
                        X, Y = self.sel[x], self.sel[y]
                        if A["keys"] == A["queries"] == X["keys"] == X["queries"] and total(A["table"]) and A["table"][0, 0] == 0 \
                           and (X["table"] == np.eye(len(X["table"]))).all() and Y["keys"] == Y["queries"] and total(Y["table"]) and self.distinct(Y["keys"]):
                            return "positions"
        return None
    def at_most_one(self, s):
        return any((self.sel[l]["table"] == 1).sum(1).max() <= 1 and self.distinct(self.sel[l]["keys"]) for l in self.conjuncts(s))
    def conjuncts(self, s):
        e = self.sel[s]
        if "keys" in e: return [s]
        return [x for p in e["parts"] for x in self.conjuncts(p)] if e["kind"] == "and" else []
    def equal_values(self, s, v):
        """All keys a query selects hold one value of s-op v."""
        if self.at_most_one(s): return True
        for l in self.conjuncts(s):
            k = self.sel[l]["keys"]
            if (self.sel[l]["table"] == 1).sum(1).max() > 1: continue
            if self.function_of(v, k): return True
            op = self.sops[k]["op"]
            if op["kind"] == "width":
                o = self.order(op["selector"])
                if isinstance(o, tuple) and (self.function_of(v, o[1])): return True
        return False
    def always(self, s):
        """Every query selects something: itself, or by position and length."""
        e = self.sel[s]
        if "keys" in e:
            if self.trivial(s): return True
            if e["keys"] == e["queries"] and (e["table"].diagonal() == 1).all(): return True
            q, k = self.by_shape(e["queries"]), self.by_shape(e["keys"])
            if q is not None and k is not None:
                _, length = self.shapes()
                return all((e["table"][np.ix_(q[length == l], k[length == l])] == 1).any(1).all() for l in set(length.tolist()))
            return False
        if e["kind"] == "or": return any(self.always(p) for p in e["parts"])
        if e["kind"] == "and":  # all parts select the position itself
            return all("keys" in self.sel[p] and self.sel[p]["keys"] == self.sel[p]["queries"] and (self.sel[p]["table"].diagonal() == 1).all() for p in e["parts"])
        return False

# ------------------------------------------------------------------ states and what is read of them
class Boxes:
    def __init__(self, lo, hi, g): self.lo, self.hi, self.g = lo, hi, g
    def copy(self): return Boxes(self.lo.copy(), self.hi.copy(), self.g.copy())
def exactly(a): a = np.asarray(a, float); return Boxes(a, a.copy(), grid(a))
class State(dict):
    dead = None
    def copy(self):
        s = State((v, b.copy()) for v, b in self.items()); s.dead = dict(self.dead or {}); return s

def store_rounds(f): return f.ps < f.p
class Read:
    """For every variable and value, what columns of weights read: range; how far partial sums go up and down, in any
    order; number of terms; grid."""
    FIELDS = ("lo", "hi", "up", "dn", "cnt", "g")
    def __init__(self, *arrays):
        for name, a in zip(self.FIELDS, arrays): setattr(self, name, a)
    def map(self, f): return Read(*(f(getattr(self, n)) for n in self.FIELDS))
    @property
    def ab(self): return self.up + self.dn
    @property
    def reach(self): return np.maximum(self.up, self.dn)
def read_boxes(b, W):
    used = (W != 0).any(1) & ((b.lo != 0) | (b.hi != 0)).any(0)
    lo, hi, g, W = b.lo[:, used], b.hi[:, used], b.g[:, used], W[used]
    mid, rad, size = (lo + hi) / 2, (hi - lo) / 2, np.maximum(np.abs(lo), np.abs(hi))
    c, r = mid @ W, rad @ np.abs(W)
    Wp, Wn, hp, ln = np.maximum(W, 0), np.maximum(-W, 0), np.maximum(hi, 0), np.maximum(-lo, 0)
    up, dn = hp @ Wp + ln @ Wn, hp @ Wn + ln @ Wp; ab = up + dn
    cnt = (size > 0).astype(float) @ (W != 0).astype(float)
    gw = grid(W); gg = np.full(c.shape, INF)
    for d in range(W.shape[0]):  # the smallest grid of the products
        prod = np.where((size[:, d] > 0)[:, None] & (W[d] != 0)[None], np.where(np.isinf(g[:, d]), 0, g[:, d])[:, None] * np.where(np.isinf(gw[d]), 0, gw[d])[None], INF)
        np.minimum(gg, prod, out=gg)
    slack = np.where((r == 0) & (ab <= 2.0**52 * gg), 0.0, 2.0**-48 * ab)
    return Read(c - r - slack, c + r + slack, up, dn, cnt, gg)
def read(state, W, b):
    out = {v: read_boxes(x, W) for v, x in state.items()}
    bias = np.asarray(b, float)[None]
    one = Read(bias, bias.copy(), np.maximum(bias, 0), np.maximum(-bias, 0), (bias != 0).astype(float), grid(bias))
    out["1"] = add_reads(out["1"], one) if "1" in out else one
    return out
def add_reads(a, b): return Read(a.lo + b.lo, a.hi + b.hi, a.up + b.up, a.dn + b.dn, a.cnt + b.cnt, np.minimum(a.g, b.g))

def varying(r):
    width = r.hi.max(0) - r.lo.min(0)
    return width > 1e-6 * np.maximum(1, r.ab.max(0)) + 4 * (r.hi - r.lo).max(0)
def hull(r): return Read(*((np.min if n in ('lo', 'g') else np.max)(getattr(r, n), 0, keepdims=True) for n in Read.FIELDS))

def joined(reads, names, env, columns, rows):
    """The sum of what is read of all variables: by value for the named ones, the hull of the others."""
    n = rows
    total = None
    for v, r in reads.items():
        sub = r.map(lambda a: a[:, columns])
        sub = sub.map(lambda a: a[env[v]]) if v in names else hull(sub)
        total = sub if total is None else add_reads(total, sub)
    return total.map(lambda a: np.broadcast_to(a, (n, len(columns))).copy())
def rounded(r, fmt):
    """Error of a computed sum, for every order; 0 where all partial sums fit; then what is stored."""
    need(r.ab.max(initial=0.0) < 1e30, "numbers too large")
    exact = (r.reach <= 2.0**fmt.p * r.g) & (r.g >= TINY)
    err = np.where(exact | (r.cnt == 0), 0.0, fmt.gamma(r.cnt) * r.ab + r.cnt * 2 * TINY)
    if fmt.ps < fmt.p:
        size = np.maximum(np.abs(r.lo), np.abs(r.hi))
        err = err + np.where(exact & (size <= 2.0**fmt.ps * r.g), 0.0, fmt.us * (size + err))
    return err

# ------------------------------------------------------------------ the checker
class Checker:
    LIMIT = 4_000_000
    def __init__(self, folder, cert, fmt, weights=None, padded=True):
        self.padded = padded
        self.P, self.cert, self.f = Program(folder), cert, fmt; self.P.define(cert.get('aux', {}))
        w = weights or tensors(f"{folder}/weights.safetensors")
        self.w = {k: fmt.cast(v) for k, v in w.items()}
        need(all(np.isfinite(v).all() for v in self.w.values()), "weights that are not finite")
        self.layers = len({k.split(".")[1] for k in self.w if k.startswith("blocks.")})
        self.counts, self.identities, self.summed_value = {}, [], {}
        for i, s in self.P.sops.items():
            if s["op"]["kind"] == "linear":
                merged = {}
                for t, f in s["op"]["terms"]: merged[t] = merged.get(t, 0.0) + f
                if len(merged) > 1 and all(merged.values()): self.identities.append((i, list(merged.items())))

    # joint values of some variables
    def combos(self, names, state):
        P = self.P; free = []
        names = sorted(names, key=str); pairs = [v for v in names if isinstance(v, int) and P.sops[v].get("aux") and P.sops[v]["op"]["kind"] == "pair_lookup"]
        inner = {x for v in pairs for x in P.inputs(v)}
        have = set()
        order = [v for v in names if isinstance(v, str)] + [v for v in P.sops if (v in names and v not in pairs) or v in inner]
        for v in order:
            if isinstance(v, int) and v not in have and P.computable(v, have): continue
            free.append(v); have.add(v)
        sizes = [P.size(v) for v in free]
        need(math.prod(sizes) <= self.LIMIT, f"{math.prod(sizes):,} joint values of {[self.name(v) for v in free]}")
        grids = np.indices(sizes).reshape(len(sizes), -1) if free else np.zeros((0, 1), int)
        env = dict(zip(free, grids)); n = grids.shape[1]; ok = np.ones(n, bool)
        for v in free:
            if state.dead and v in state.dead: ok &= ~state.dead[v][env[v]]
        for v in free:
            if isinstance(v, int) and P.length_like(v) and "I" in env:
                ok &= env["I"] < P.sops[v]["num"][env[v]]
        env = {v: c[ok] for v, c in env.items()}; n = int(ok.sum())
        if free:
            ok = np.ones(n, bool); full = dict(env)
            for i, s in P.sops.items():
                if i in full or not (P.inputs(i) or P.parts(i)) or not P.computable(i, set(env)): continue
                if s["op"]["kind"] in ("linear", "aggregation") or (s["table"] is not None and (s["table"] < 0).any()) or i in names: ok &= P.codes(i, full) >= 0
            for v in names: full.setdefault(v, None); full[v] = P.codes(v, full) if full[v] is None else full[v]
            env = {v: full[v][ok] for v in set(env) | set(names)}; n = int(ok.sum())
        need(n > 0, f"nothing is defined for {[self.name(v) for v in names]}")
        return env, n
    def name(self, v): return self.P.sops[v]["label"] if isinstance(v, int) else v

    def substituted(self, reads):
        """Columns that read terms of a linear identity in its proportions read the sum instead."""
        P = self.P
        H = next(iter(reads.values())).lo.shape[1]
        for z, terms in self.identities:
            if not all(t in reads for t, _ in terms): continue
            zn = P.num(z); 
            if np.isnan(zn).any() or any(np.isnan(P.num(t)).any() for t, _ in terms): continue
            alphas, resid = [], []
            for t, f in terms:
                r, x = reads[t], P.num(t); mid = (r.lo + r.hi) / 2
                a, b = int(np.argmin(x)), int(np.argmax(x))
                if x[a] == x[b]: alphas = []; break
                alphas.append((mid[b] - mid[a]) / (x[b] - x[a]) / f)
            if not alphas: continue
            al = np.mean(alphas, 0); scale = np.abs(alphas).max(0)
            good = (scale > 0) & (np.abs(np.array(alphas) - al).max(0) <= 0.05 * scale)
            if not good.any(): continue
            cols = np.flatnonzero(good); al = al[cols]
            lo = hi = np.zeros((1, len(cols))); up, dn, cnt = lo, lo, lo
            for t, f in terms:
                r, x = reads[t], P.num(t)[:, None]
                lo = lo + (r.lo[:, cols] - al * f * x).min(0, keepdims=True); hi = hi + (r.hi[:, cols] - al * f * x).max(0, keepdims=True)
                up = up + r.up[:, cols].max(0, keepdims=True); dn = dn + r.dn[:, cols].max(0, keepdims=True); cnt = cnt + r.cnt[:, cols].max(0, keepdims=True)
                for fld in Read.FIELDS: getattr(r, fld)[:, cols] = INF if fld == 'g' else 0.0
            const = P.sops[z]["op"].get("constant", 0.0) if isinstance(z, int) else 0.0
            tol = np.abs(al) * 1e-9 * np.maximum(1, np.abs(zn))[:, None] * (len(terms) + 1)
            base = al * (zn[:, None] - const)
            new = Read(base + lo - tol, base + hi + tol, *(np.broadcast_to(a, base.shape) for a in (up, dn, cnt)), np.zeros(base.shape))
            full = Read(*(np.full((len(zn), H), INF if fld == 'g' else 0.0) for fld in Read.FIELDS))
            for name in Read.FIELDS: getattr(full, name)[:, cols] = getattr(new, name)
            reads[z] = add_reads(reads[z], full) if z in reads else full
        return reads

    # ---------------------------------------------------------------- embedding
    def embed(self):
        we, wp, f = self.w["embed.W_E"], self.w["pos_embed.W_pos"], self.f
        P = self.P; need(we.shape[0] == P.V + 2 and wp.shape[0] == P.n + 1, "embeddings of another shape")
        tok = State({"T": exactly(we[: P.V]), "I": exactly(wp[1:]), "1": exactly(np.zeros((1, we.shape[1])))})
        bos = self.summed(we[P.V] + 0 * wp[:1], wp[:1])
        pad = self.summed(np.broadcast_to(we[P.V + 1], wp[1:].shape), wp[1:])
        both = ((we[: P.V] != 0).any(0)) & ((wp[1:] != 0).any(0))
        for j in np.flatnonzero(both):
            a, b = we[: P.V, j], wp[1:, j]; ab = np.abs(a).max() + np.abs(b).max()
            if ab > 2.0**f.ps * min(grid(a).min(), grid(b).min()):
                tok["1"].lo[0, j] -= f.us * ab; tok["1"].hi[0, j] += f.us * ab; tok["1"].g[0, j] = 0.0
        tok.dead = {}
        return tok, State({"B": bos, "1": exactly(np.zeros((1, we.shape[1])))}), State({"P": pad, "1": exactly(np.zeros((1, we.shape[1])))})
    def summed(self, a, b):
        s = a + b; e = np.where((np.abs(a) + np.abs(b)) <= 2.0**self.f.ps * np.minimum(grid(a), grid(b)), 0.0, self.f.us * (np.abs(a) + np.abs(b)))
        return Boxes(s - e, s + e, natural(s - e, s + e, self.f.ps))

    # ---------------------------------------------------------------- MLP
    def mlp(self, state, l, owners, special=None):
        """The state after an MLP. Every dimension that is written becomes a function of its owner's value, as a hull."""
        f, P = self.f, self.P
        wi, bi, wo, bo = (self.w[f"blocks.{l}.mlp.{n}"] for n in ("W_in", "b_in", "W_out", "b_out"))
        new = state.copy()
        if not wi.shape[1] and not bo.any(): return new
        if special == "P": state, back = self.by_binade(state, wi)
        reads = read(state, wi, bi)
        if special is None: reads = self.substituted(reads)
        vary = {v: varying(r) for v, r in reads.items() if len(r.lo) > 1}
        written = np.flatnonzero((wo != 0).any(0) | (bo != 0))
        jobs = {}; self.eff, self._dirs = self.effective(state, wi, bi), {}
        for j in written:
            hs = np.flatnonzero(wo[:, j])
            own = np.array([h for h in hs if wi[j, h] != 0 and (np.delete(wi[:, h], j) == 0).all()], int)
            holds = [v for v, b in state.items() if ((b.lo[:, j] != 0) | (b.hi[:, j] != 0)).any()]
            lo = sum(state[v].lo[:, j].min() for v in holds); hi = sum(state[v].hi[:, j].max() for v in holds)
            rest = np.setdiff1d(hs, own)
            left = self.own_range(lo, hi, j, own, wi, bi, wo) if len(own) and holds else None
            if left is not None and left[1] - left[0] <= 1e-3:  # what was there is cleared
                names = set()
            else:
                names, left, rest = set(v for v in holds if len(state[v].lo) > 1), None, hs
            for v, m in vary.items():
                if m[rest].any(): names.add(v)
            jobs.setdefault((frozenset(names), owners.get(int(j))), []).append((j, rest, left, own, max(abs(lo), abs(hi)) if holds else 0.0))
        for (names, owner), columns in jobs.items():
            if special is not None:
                codes = back if special == "P" else np.zeros(1, int); n = len(codes); env = {special: np.arange(n)}; target, size = special, len(new[special].lo); names = {special}
            else:
                if isinstance(owner, int): names = names | P.leaves(owner, names)  # it may not depend on all that it is a function of
                env, n = self.combos(names, state); names = names & set(state) | {v for v in names if v in reads}
                if owner is None: codes, target, size = np.zeros(n, int), "1", 1
                else:
                    need(isinstance(owner, int) and P.computable(owner, set(env)) or owner in env, f"{self.name(owner)} is not a function of {[self.name(v) for v in names]}")
                    codes, target, size = (P.codes(owner, dict(env)) if owner not in env else env[owner]), owner, P.size(owner)
                    keep = codes >= 0; env = {v: c[keep] for v, c in env.items()}; codes = codes[keep]; n = len(codes)
            hs = np.unique(np.concatenate([c[1] for c in columns]).astype(int))
            J = [c[0] for c in columns]
            low, high = np.full((size, len(J)), INF), np.full((size, len(J)), -INF)
            step = max(1, 3_000_000 // max(1, len(hs)))
            for at in range(0, n, step):
                part = {v: c[at:at + step] for v, c in env.items()}; m = min(step, n - at)
                lo, hi = self.mlp_values(state, reads, names, part, m, hs, columns, wi, bi, wo, bo)
                for k in range(len(J)):
                    np.minimum.at(low[:, k], codes[at:at + step], lo[:, k]); np.maximum.at(high[:, k], codes[at:at + step], hi[:, k])
            seen = np.isfinite(low).all(1)
            for v in new: new[v].lo[:, J] = 0; new[v].hi[:, J] = 0; new[v].g[:, J] = INF
            if target not in new:
                d = wi.shape[0]; new[target] = Boxes(np.zeros((size, d)), np.zeros((size, d)), np.full((size, d), INF))
            low[~seen] = high[~seen] = 0.0
            new[target].lo[:, J], new[target].hi[:, J] = low, high
            new[target].g[:, J] = natural(low, high, f.ps)
            if target != "1" and special is None: new.dead[target] = new.dead.get(target, np.zeros(size, bool)) | ~seen
        return new
    def by_binade(self, state, wi):
        """PAD's rows with numbers around 1/2 or 1 taken apart there: floats below and above have other grids."""
        b = state["P"]; back = np.arange(len(b.lo)); lo, hi = b.lo, b.hi
        mixed = [j for j in np.flatnonzero((wi != 0).any(1)) if ((lo[:, j] > 0.3) & (lo[:, j] < 1) & (hi[:, j] > 0.5) & (hi[:, j] - lo[:, j] > 0)).any()]
        for j in mixed[:4]:
            for cut in (0.5, 1.0):
                cross = (lo[:, j] < cut) & (hi[:, j] > cut); below, above = hi.copy(), lo[cross].copy()
                below[cross, j] = cut; above[:, j] = cut
                lo, hi, back = np.vstack([lo, above]), np.vstack([below, hi[cross]]), np.append(back, back[cross])
        out = State({"P": Boxes(lo, hi, natural(lo, hi, self.f.ps)), "1": state["1"]})
        out["P"].g = np.where(lo == hi, np.where(lo == 0, INF, grid(lo)), out["P"].g)
        return out, back
    def own_range(self, lo, hi, j, own, wi, bi, wo):
        """Range of x + (what the neurons that read only x write back to it), in real numbers; exact if each product is."""
        pts = [lo, hi] + [min(max(-bi[h] / wi[j, h], lo), hi) for h in own]
        vals = [s + sum(wo[h, j] * max(wi[j, h] * s + bi[h], 0.0) for h in own) for s in pts]
        pow2 = all(math.frexp(abs(wi[j, h]))[0] == 0.5 and math.frexp(abs(wo[h, j]))[0] == 0.5 and bi[h] == 0 for h in own)
        alone = all(sum(wi[j, h] * sign > 0 for h in own) <= 1 for sign in (1, -1))  # one neuron for each sign: x - x, nothing is rounded
        e = 0.0 if pow2 and alone and min(vals) == max(vals) == 0.0 else (16 + 2 * len(own)) * self.f.us * (max(abs(lo), abs(hi)) * (1 + sum(abs(wo[h, j] * wi[j, h]) for h in own)) + sum(abs(wo[h, j] * bi[h]) for h in own)) + TINY
        return min(vals) - e, max(vals) + e
    def mlp_values(self, state, reads, names, env, n, hs, columns, wi, bi, wo, bo):
        f = self.f; at = {h: k for k, h in enumerate(hs)}; we, be = self.eff
        pre = joined(reads, names, env, hs, n); err = rounded(pre, f)
        lo, hi = np.empty((n, len(columns))), np.empty((n, len(columns)))
        for k, (j, rest, left, own, held) in enumerate(columns):
            ks = [at[h] for h in rest]; W = wo[rest, j]
            F_lo, F_hi = np.zeros(n), np.zeros(n)
            for cluster in self.parallel(rest, we):
                a, b = self.piecewise(cluster, rest, ks, pre, we, be, W, n); F_lo += a; F_hi += b
            act = np.maximum(pre.hi[:, ks] + err[:, ks], 0.0); used = act > 0
            wobble = (err[:, ks] * used) @ np.abs(W)
            up, dn = act @ np.maximum(W, 0) + max(bo[j], 0), act @ np.maximum(-W, 0) + max(-bo[j], 0); cnt = used @ (W != 0).astype(float) + (bo[j] != 0)
            g = np.where(used & (err[:, ks] == 0), pre.g[:, ks] * grid(W), np.where(used, 0.0, INF)).min(1, initial=INF)
            g = np.minimum(g, grid(bo[j]))
            # what the slot held: by value, or (cleared) what is left of it
            if left is None:
                x = None
                for v, b in state.items():
                    part = (b.lo[env[v], j], b.hi[env[v], j], b.g[env[v], j]) if v in names else (b.lo[:, j].min(), b.hi[:, j].max(), b.g[:, j].min())
                    x = part if x is None else (x[0] + part[0], x[1] + part[1], np.minimum(x[2], part[2]))
                size = np.maximum(np.abs(x[0]), np.abs(x[1])); F_lo = F_lo + x[0]; F_hi = F_hi + x[1]
                up, dn = up + np.maximum(x[1], 0), dn + np.maximum(-x[0], 0)
                cnt, g = cnt + (size > 0), np.where(size > 0, np.minimum(g, x[2]), g)
            else:
                gx = min((b.g[:, j].min() for b in state.values()), default=INF)
                F_lo = F_lo + left[0]; F_hi = F_hi + left[1]
                other = cnt > 0  # alone, x - x is exactly what own_range says
                up, dn, cnt = up + np.where(other, held, 0.0), dn + np.where(other, held, 0.0), cnt + np.where(other, 2, 0)
                g = np.where(other, np.minimum(g, gx * min(1.0, grid(wo[own, j]).min())), g)
            terms = up + dn; exact = np.maximum(up, dn) <= 2.0**f.p * g
            r = np.where(exact | (cnt <= (1 if f.ps == f.p else 0)) & (wobble == 0) & self.single(W), 0.0, f.gamma(cnt + 1) * terms)
            if f.ps < f.p: r = r + np.where(exact & (terms <= 2.0**f.ps * g), 0.0, 2 * f.us * (terms + r))
            pad64 = np.where(exact, 0.0, 2.0**-48 * terms)
            lo[:, k] = F_lo + bo[j] - wobble - r - pad64; hi[:, k] = F_hi + bo[j] + wobble + r + pad64
        return lo, hi
    @staticmethod
    def single(W): return bool(np.all(np.frexp(np.abs(W[W != 0]))[0] == 0.5)) if (W != 0).any() else True
    def effective(self, state, wi, bi):
        """Weights and biases of neurons with the dimensions that hold one number everywhere counted as bias."""
        lo = sum(b.lo.min(0) for b in state.values()); hi = sum(b.hi.max(0) for b in state.values())
        fixed = lo == hi; lo = np.where(fixed, lo, 0.0)
        w = np.where(fixed[:, None], 0.0, wi); prod = np.vstack([lo[:, None] * wi, bi[None]])
        self.rough = np.where((np.abs(prod).sum(0) <= 2.0**52 * grid(prod).min(0)) & (bits(lo)[:, None] + bits(wi) <= 53).all(0), 0.0, np.abs(prod).sum(0))
        return w, prod.sum(0)
    def parallel(self, hs, wi):
        """Neurons by the direction they read, with the factor of each."""
        groups = {}
        for k, h in enumerate(hs):
            if h not in self._dirs:
                nz = np.flatnonzero(wi[:, h]); w = wi[nz, h]
                ratio = w / w[0] if len(w) else w
                exact = len(w) > 0 and (ratio * w[0] == w).all()
                self._dirs[h] = (tuple(nz.tolist()), ratio.tobytes()) if exact else ("alone", int(h))
            groups.setdefault(self._dirs[h], []).append(k)
        return groups.values()
    def piecewise(self, cluster, rest, ks, pre, wi, bi, W, n):
        """Range of the sum over neurons that read one number xi (up to factors) of W relu(w xi + b), by its kinks."""
        hs = [rest[k] for k in cluster]; cols = [ks[k] for k in cluster]; wts = W[cluster]
        nz = np.flatnonzero(wi[:, hs[0]])
        if len(hs) == 1 or not len(nz):
            a, b = np.maximum(pre.lo[:, cols], 0.0), np.maximum(pre.hi[:, cols], 0.0)
            return (np.where(wts > 0, a, b) * wts).sum(1), (np.where(wts > 0, b, a) * wts).sum(1)  # float64's own rounding: pad64
        w = np.array([wi[nz[0], h] for h in hs]); b = bi[hs]
        if len(nz) > 1:  # exactly parallel? products of two 24-bit numbers are exact
            block = wi[np.ix_(nz, hs)]
            if (block != block.astype(np.float32)).any() or (block * w[0] != block[:, :1] * w).any():
                a, z = np.maximum(pre.lo[:, cols], 0.0), np.maximum(pre.hi[:, cols], 0.0)
                return (np.where(wts > 0, a, z) * wts).sum(1), (np.where(wts > 0, z, a) * wts).sum(1)
        lo, hi = (pre.lo[:, cols[0]] - b[0]) / w[0], (pre.hi[:, cols[0]] - b[0]) / w[0]
        if w[0] < 0: lo, hi = hi, lo
        rough = float(self.rough[hs].max()); eps = 2.0**-50 * (np.maximum(np.abs(lo), np.abs(hi)) + (abs(b[0]) + rough) / abs(w[0])); lo, hi = lo - eps, hi + eps
        slopes, shifts = wts * w, wts * b
        fine = rough == 0 and (bits(wts) + bits(w) <= 53).all() and (bits(wts) + bits(b) <= 53).all() and np.abs(shifts).sum() <= 2.0**52 * grid(shifts).min(initial=INF) and np.abs(slopes).sum() <= 2.0**52 * grid(slopes).min(initial=INF)
        def value(x):  # with the neurons that are on: a x + b, where a = 0 is exact
            y = x[:, None] * w + b; on = (y > 0).astype(float); A, B = on @ slopes, on @ shifts
            slack = 2.0**-48 * ((np.abs(slopes)).sum() * np.abs(x) + np.abs(shifts).sum() + rough * np.abs(wts).sum())
            clear = (np.abs(y) > 2.0**-48 * (np.abs(x[:, None] * w) + np.abs(b))).all(1)
            slack = np.where((A == 0) & fine & clear, 0.0, slack)
            return A * x + B - slack, A * x + B + slack
        ends = value(lo), value(hi)
        low, high = np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])
        kinks = -b / w; near = 2.0**-50 * (np.abs(kinks) + 1)
        inside = (kinks[None] > (lo - near.max())[:, None]) & (kinks[None] < (hi + near.max())[:, None])
        if inside.any():
            at = [value(kinks + step) for step in (-near, 0.0, near)]
            low = np.minimum(low, np.where(inside, np.min([y[0] for y in at], 0)[None], INF).min(1)); high = np.maximum(high, np.where(inside, np.max([y[1] for y in at], 0)[None], -INF).max(1))
        return low, high

    # ---------------------------------------------------------------- attention
    def attention(self, tok, bos, pad, l, hints):
        f, P = self.f, self.P; g = lambda n: self.w[f"blocks.{l}.attn.{n}"]
        heads, d = g("W_Q").shape[0], g("W_O").shape[-1]
        adds = []; bos_add = np.zeros((2, 1, d)); pad_add = np.zeros((2, P.n, d))
        for h in range(heads):
            adds += self.head(tok, bos, pad, l, h, {int(j): o for j, o in hints[h].items()}, bos_add, pad_add)
        bo = g("b_O")
        need(not bo.any(), "a bias b_O is not covered here")
        out = tok.copy(); terms = np.zeros(d); cnt = np.zeros(d, int)
        for j, owner, lo, hi in adds:
            size = max(np.abs(lo).max(), np.abs(hi).max()); terms[j] += size; cnt[j] += 1
            if owner not in out: out[owner] = Boxes(*(np.zeros((len(lo), d)) for _ in "ab"), np.full((len(lo), d), INF))
            b = out[owner]; b.lo[:, j] += lo; b.hi[:, j] += hi
        for j in np.flatnonzero(cnt):
            held = sum(max(np.abs(b.lo[:, j]).max(), np.abs(b.hi[:, j]).max()) for b in tok.values())
            single = cnt[j] == 1 and held == 0
            owners = {o for jj, o, _, _ in adds if jj == j}
            for o in owners:
                b = out[o]; b.g[:, j] = natural(b.lo[:, j], b.hi[:, j], f.ps) if single else np.where(b.lo[:, j] == b.hi[:, j], grid(b.lo[:, j]), 0.0)
            if not single:
                low_grid = min(b.g[:, j].min() for b in out.values())
                if terms[j] + held > 2.0**f.ps * low_grid:
                    e = f.gamma(int(cnt[j]) + 1) * (terms[j] + held) + (2 * f.us * (terms[j] + held) if f.ps < f.p else 0)
                    out["1"].lo[0, j] -= e; out["1"].hi[0, j] += e; out["1"].g[0, j] = 0.0
        for state, add in ((bos, bos_add), (pad, pad_add)):
            (v,) = [k for k in state if k != "1"]
            ch = np.flatnonzero((add != 0).any((0, 1))); b = state[v]; add = add[:, :, ch]
            size = np.maximum(np.abs(b.lo[:, ch]), np.abs(b.hi[:, ch])) + np.abs(add).max(0)
            empty = ((b.lo[:, ch] == 0) & (b.hi[:, ch] == 0)) & (sum((j == ch) for j, _, _, _ in adds) <= 1)
            e = np.where(empty | (add[0] == add[1]) & (b.lo[:, ch] == b.hi[:, ch]) & (size <= 2.0**f.ps * np.minimum(grid(add[0]), b.g[:, ch])), 0.0, f.gamma(heads + 2) * size + f.us * size)
            b.lo[:, ch] += add[0] - e; b.hi[:, ch] += add[1] + e; b.g[:, ch] = natural(b.lo[:, ch], b.hi[:, ch], f.ps)
        return out
    def side(self, state, W, b, special=None, more=()):
        reads = read(state, W, b)
        if special is None:
            names = {v for v, r in reads.items() if len(r.lo) > 1 and varying(r).any()}
            for i in more: names = names | self.P.leaves(i, names)
            env, n = self.combos(names, state) if names else ({}, 1)
            names = {v for v in names if v in reads}
        else: names, env, n = {special}, {special: np.arange(len(state[special].lo))}, len(state[special].lo)
        r = joined(reads, names, env, np.arange(W.shape[1]), n); e = rounded(r, self.f)
        r.lo, r.hi = r.lo - e, r.hi + e
        r.g = np.where(r.lo == r.hi, grid(r.lo), 0.0)
        return names, env, n, r
    def scores(self, q, k, ref=None):
        """Bounds of query . key as computed: [query, key]; up to what is the same for all keys, where keys to compare with are given."""
        f = self.f
        qc, qr, kc, kr = (q.lo + q.hi) / 2, (q.hi - q.lo) / 2, (k.lo + k.hi) / 2, (k.hi - k.lo) / 2
        qa, ka = np.abs(qc) + qr, np.abs(kc) + kr
        c = qc @ kc.T; r = qa @ kr.T + (qr @ np.abs(kc).T if ref is None else self.off(qr, kc, ref)); ab = qa @ ka.T
        cnt = (qa > 0).astype(float) @ (ka > 0).astype(float).T
        # pairs all of whose products are exact: those that meet nothing whose grid is unknown
        qn, kn = qa > 0, ka > 0; qbad, kbad = qn & (q.g == 0), kn & (k.g == 0)
        known = (qbad.astype(float) @ kn.T.astype(float) + qn.astype(float) @ kbad.T.astype(float)) == 0
        gq, gk = np.where(qn & ~qbad, q.g, INF).min(0, initial=INF), np.where(kn & ~kbad, k.g, INF).min(0, initial=INF)
        use = np.isfinite(gq) & np.isfinite(gk)
        gg = (gq[use] * gk[use]).min(initial=INF) if use.any() else INF
        exact = known & (ab <= 2.0**f.p * gg) & (r == 0) & (gg >= TINY)
        e = np.where(exact | (cnt == 0), 0.0, f.gamma(cnt) * ab + 2.0**-48 * ab)
        if f.ps < f.p: e = e + np.where(exact & (ab <= 2.0**f.ps * gg), 0.0, f.us * (ab + e))
        return c - r - e, c + r + e
    @staticmethod
    def off(qr, kc, ref, other=None):
        """How far an error of the query moves the scores of keys apart from that of another key: qr . |k - ref|."""
        out = np.zeros((len(qr), len(kc)))
        for r in np.flatnonzero(qr.any(0)): out += qr[:, r, None] * np.maximum(np.abs(kc[None, :, r] - ref[:, r, None]), 0.0 if other is None else np.abs(other[None, :, r] - ref[:, r, None]))
        return out
    def pad_scores(self, q, pad, wk, bk, by_row=False, ref=None, kp=None):
        """The most a query may find at PAD: what PAD holds is known dimension by dimension, so queries are taken there."""
        f = self.f; qc, qr = (q.lo + q.hi) / 2, (q.hi - q.lo) / 2
        c, const, spread, sizes = qc @ wk.T, qc @ bk, qr @ np.abs(wk).T, (np.abs(qc) + qr) @ np.abs(wk).T
        best = np.full(len(c), -INF); rows = np.abs(wk).any(1); each = []; apart = 0.0
        if ref is not None: spread = np.zeros_like(spread)
        for p, (lo, hi) in enumerate(zip(pad.lo, pad.hi)):
            if ref is not None: apart = self.off(qr, kp.lo[p:p + 1], ref, kp.hi[p:p + 1])[:, 0] if qr.any() else 0.0
            few = f.gamma(float(((lo != 0) | (hi != 0))[rows].sum() + wk.shape[1] + 2)) + (4 * f.us if f.ps < f.p else 0.0)
            e = few * sizes + spread  # roundings are as small as what is rounded: both are taken at the worst x
            top = np.maximum(c * lo + e * np.abs(lo), c * hi + e * np.abs(hi)); top = np.where((lo < 0) & (hi > 0), np.maximum(top, 0.0), top)
            now = top.sum(1) + const + ((qr if ref is None else 0.0) + few * (np.abs(qc) + qr)) @ np.abs(bk) + apart + TINY
            best = np.maximum(best, now); each.append(now.max())
        return np.array(each) if by_row else best
    def pad_to_pad(self, pad, wq, bq, wk, bk):
        """The most a PAD query may find at PAD, by its position; PAD keys are taken together."""
        f = self.f; one = np.ones((len(pad.lo), 1)); lo, hi = np.hstack([pad.lo, one]), np.hstack([pad.hi, one])
        wq, wk = np.vstack([wq, bq]), np.vstack([wk, bk]); k_lo, k_hi = lo.min(0), hi.max(0)
        few = f.gamma(float(2 * len(wq) + wq.shape[1] + 2)) + (6 * f.us if f.ps < f.p else 0.0)
        M, B = wq @ wk.T, np.abs(wq) @ np.abs(wk).T; U = M + few * B
        pos = lambda a: np.maximum(a, 0.0); neg = lambda a: np.maximum(-a, 0.0)
        main = (pos(hi) @ pos(U)) @ pos(k_hi) - (pos(lo) @ neg(U)) @ pos(k_lo)
        size, k_size = np.maximum(np.abs(lo), np.abs(hi)), np.maximum(np.abs(k_lo), np.abs(k_hi))
        return main + (1 + few) * ((neg(lo) @ B) @ k_size + (size @ B) @ neg(k_lo)) + TINY
    def head(self, tok, bos, pad, l, h, owners, bos_add, pad_add):
        f, P = self.f, self.P; g = lambda n: self.w[f"blocks.{l}.attn.{n}"][h]
        more = [set(), set()]
        for kind in {self.owner_kind(o, l, h) for o in owners.values()}:
            if isinstance(kind[1], int):
                for lit in P.literals(kind[1]):
                    e = P.sel[lit]; t = e["table"]
                    if not (t == t[:1]).all(): more[0].add(e["queries"])
                    if not (t == t[:, :1]).all(): more[1].add(e["keys"])
        qn, qenv, nq, q = self.side(tok, g("W_Q"), g("b_Q"), more=more[0]); kn, kenv, nk, k = self.side(tok, g("W_K"), g("b_K"), more=more[1])
        need(nq * nk <= 60_000_000, f"{nq:,} x {nk:,} classes of queries and keys")
        _, _, _, qb = self.side(bos, g("W_Q"), g("b_Q"), "B"); _, _, _, kb = self.side(bos, g("W_K"), g("b_K"), "B")
        
        kp = self.side(pad, g("W_K"), g("b_K"), "P")[3]
        # BOS sees itself alone
        seen = max(self.scores(qb, k)[1].max(), self.pad_scores(qb, pad["P"], g("W_K"), g("b_K")).max() if self.padded else -INF)
        need(seen <= self.scores(qb, kb)[0][0, 0] - f.theta, f"head {l}.{h}: the BOS query sees other keys")
        qp = self.side(pad, g("W_Q"), g("b_Q"), "P")[3]
        above = np.maximum(self.pad_scores(k, pad["P"], g("W_Q"), g("b_Q"), True), self.pad_to_pad(pad["P"], g("W_Q"), g("b_Q"), g("W_K"), g("b_K"))) - self.scores(qp, kb)[0][:, 0]
        share = np.exp(np.minimum(above, 50.0)) * P.n; share = np.where(above > 40, 1.0, share / (1 + share) * (1 + 1e-9))  # of all but BOS, for a PAD query
        # values
        wv, bv, wo = g("W_V"), g("b_V"), g("W_O")
        vr = read(tok, wv, bv); vb = self.side(bos, wv, bv, "B")[3]; vp = self.side(pad, wv, bv, "P")[3]
        J = np.flatnonzero((wo != 0).any(0)); out = []
        vals, kinds = {}, {}
        for j in J:
            used = np.flatnonzero(wo[:, j]); col = wo[used, j]
            names = {v for v, r in vr.items() if len(r.lo) > 1 and varying(r)[used].any()}
            env, n = self.combos(names, tok) if names else ({}, 1)
            r = joined(vr, names, env, used, n); e = rounded(r, f)
            o_lo = (np.where(col > 0, r.lo - e, r.hi + e) * col).sum(1); o_hi = (np.where(col > 0, r.hi + e, r.lo - e) * col).sum(1)
            b_lo, b_hi = (np.where(col > 0, vb.lo[0, used], vb.hi[0, used]) * col).sum(), (np.where(col > 0, vb.hi[0, used], vb.lo[0, used]) * col).sum()
            p_lo, p_hi = (np.where(col > 0, vp.lo[:, used], vp.hi[:, used]) * col).sum(1).min(), (np.where(col > 0, vp.hi[:, used], vp.lo[:, used]) * col).sum(1).max()
            if o_lo.min() == o_hi.max() == b_lo == b_hi == p_lo == p_hi == 0.0: continue
            pow2 = len(used) == 1 and math.frexp(abs(col[0]))[0] == 0.5
            tail = 0.0 if pow2 else f.gamma(len(used)) + (f.us if f.ps < f.p else 0.0)  # of the product with W_O, relative to the sizes of its terms
            o_ab = np.maximum(np.abs(r.lo - e), np.abs(r.hi + e)) @ np.abs(col); b_ab = float(np.maximum(np.abs(vb.lo[0, used]), np.abs(vb.hi[0, used])) @ np.abs(col))
            p_ab = float((np.maximum(np.abs(vp.lo[:, used]), np.abs(vp.hi[:, used])) @ np.abs(col)).max())
            astray = (tail + f.copy) * b_ab + 2 * f.leak(P.n) * max(float(o_ab.max()), b_ab, p_ab); bos_add[0, 0, j] += b_lo - astray; bos_add[1, 0, j] += b_hi + astray
            # at PAD: BOS's share and the rest's, of which no more is known than how large it can be
            a, z = np.minimum(min(o_lo.min(), p_lo) * share + b_lo * (1 - share), b_lo), np.maximum(max(o_hi.max(), p_hi) * share + b_hi * (1 - share), b_hi)
            few = (f.gamma(2 * P.n + 8) + 2 * f.rexp + 4 * f.us + tail) * 2; e = few * (max(o_ab.max(), p_ab) * share + b_ab)
            signed = (min(o_lo.min(), b_lo, p_lo) >= 0, max(o_hi.max(), b_hi, p_hi) <= 0) if len(used) == 1 else (False, False)  # sums of what is not negative are not
            a, z = (np.maximum(a - e, 0.0) if signed[0] else a - e), (np.minimum(z + e, 0.0) if signed[1] else z + e)
            if o_ab.max() == p_ab == 0.0: a, z = np.maximum(a, min(b_lo - tail * b_ab, 0.0)), np.minimum(z, max(b_hi + tail * b_ab, 0.0))  # computed weights are at most 1
            pad_add[0, :, j] += a; pad_add[1, :, j] += z
            owner = owners.get(int(j)); need(owner is not None, f"nobody owns what head {l}.{h} writes to {j}")
            kind = self.owner_kind(owner, l, h)
            if kind[1] not in kinds: kinds[kind[1]] = self.selection(kind, qenv, kenv, nq, nk, q, k, kb, kp, pad["P"], l, h)
            out.append((j, *self.aggregate(owner, kind, kinds[kind[1]], names, env, o_lo, o_hi, o_ab, (b_lo, b_hi), b_ab, p_ab, tail, l, h)))
        return out
    def owner_kind(self, owner, l, h):
        if isinstance(owner, str): return ("sum" if owner[0] == "s" else "count", f"c{l}.{h}")
        op = self.P.sops[owner]["op"]
        if op["kind"] == "length": return ("width", "all")
        if op["kind"] == "width": return ("width", op["selector"])
        need(op["kind"] == "aggregation", f"a head cannot compute {self.name(owner)}")
        return ("mean", op["selector"])
    def selection(self, kind, qenv, kenv, nq, nk, q, k, kb, kp, pad, l, h):
        """Which keys each query class selects, by the program; and that the scores say the same."""
        P, f = self.P, self.f; s = kind[1]; ok = np.ones((nq, nk), bool); kc = (k.lo + k.hi) / 2
        if s == "all": M, sure = np.ones((nq, nk), bool), True
        elif isinstance(s, str):
            M, sure = ((q.lo + q.hi) / 2) @ kc.T > -64.0, False
            self.counts[s] = (dict(qenv), dict(kenv), M)
        else:
            (M, ok), sure = P.selected(s, dict(qenv), dict(kenv)), P.always(s)
            M, ok = np.broadcast_to(M, (nq, nk)), np.broadcast_to(ok, (nq, nk))
        ref = np.where((M & ok).any(1)[:, None], kc[(M & ok).argmax(1)], (kb.lo + kb.hi) / 2)  # an error of the query moves all keys: only differences count
        lo, hi = self.scores(q, k, ref); blo, bhi = (a[:, 0] for a in self.scores(q, kb, ref))
        phi = self.pad_scores(q, pad, self.w[f"blocks.{l}.attn.W_K"][h], self.w[f"blocks.{l}.attn.b_K"][h], ref=ref, kp=kp)
        phi = np.minimum(phi, self.scores(q, kp, ref)[1].max(1))  # exact where PAD holds exact numbers
        s_lo = np.where(M & ok, lo, INF).min(1); s_hi = np.where(M & ok, hi, -INF).max(1); u_hi = np.where(M | ~ok, -INF, hi).max(1)
        some = (M & ok).any(1)
        spread = float(np.where(some, s_hi - s_lo, 0.0).max())
        weight = None
        if (blo > s_hi - 60)[some].any():  # BOS counts beside the selected keys
            need(some.any(), "nothing to count"); c = ((blo + bhi) / 2)[some] - ((s_lo + s_hi) / 2)[some]
            rad = ((bhi - blo) / 2 + (s_hi - s_lo) / 2)[some].max()
            weight = (float(c.min() - rad), float(c.max() + rad))
            need(weight[1] - weight[0] < 1e-3 and abs(weight[1]) < 60, f"head {l}.{h}: BOS has weight e^{weight}")
            floor = np.minimum(np.where(some, s_lo, INF), blo)
        else:
            need((bhi <= s_lo - f.theta)[some].all(), f"head {l}.{h}: BOS is not below what is selected")
            floor = np.where(some, s_lo, INF) if sure else np.minimum(blo, np.where(some, s_lo, INF))
        need((u_hi <= floor - f.theta).all(), f"head {l}.{h}: keys that are not selected have scores up to {float((u_hi - floor).max()):.3g}")
        need(not self.padded or (phi <= floor - f.theta).all(), f"head {l}.{h}: PAD has scores up to {float((phi - floor).max()):.3g}")
        return dict(spread=spread, weight=weight, sure=sure, never=not some.any())
    def aggregate(self, owner, kind, sel, names, env, o_lo, o_hi, o_ab, b, b_ab, p_ab, tail, l, h):
        """What a head writes for each value of the owner. o: what it reads at keys, by joint value; b: at BOS; *_ab: sizes of the terms."""
        P, f = self.P, self.f; n = P.n; rho1 = 3 * f.u + 2 * f.rexp + math.expm1(2 * sel["spread"]) + tail + max(map(abs, sel["weight"] or (0, 0))) * f.u
        uneven = f.gamma(n) if sel["spread"] or store_rounds(f) or f.copy else 0.0  # weights that are not all 1 do not add up exactly
        big = max(float(o_ab.max()), b_ab); leak = f.leak(n) * 2 * max(big, p_ab)
        store = f.us if f.ps < f.p else 0.0
        if kind[0] == "sum":
            need(sel["weight"] is not None and b == (0.0, 0.0), f"head {l}.{h}: BOS has no weight, or holds something")
            v = next((P.sops[int(i)]["op"].get("value") for i, t in self.cert["sums"].items() if owner in t), None)
            need(v is not None and P.computable(v, set(env)), f"head {l}.{h} does not read what is summed")
            num = P.sops[v]["num"][P.codes(v, dict(env))]; need((o_ab[num == 0] == 0).all(), f"head {l}.{h}: what counts for nothing is read")
            self.summed_value[owner] = v; at = o_lo[num == 1].min(), o_hi[num == 1].max(), o_ab.max()
            S = np.arange(n + 1.0); c0, c1 = map(math.exp, sel["weight"]); rho = rho1 + 2 * f.gamma(n + 2) + uneven + 4 * store
            low, high, e = at[0] * S / (c1 + n), at[1] * S / (c0 + S), rho * at[2] * S / (c0 + S)
            if at[0] < 0: low, high = np.minimum(low, at[0] * S / (c0 + S)), np.maximum(high, at[1] * S / (c1 + n))
            return owner, low - e - leak, high + e + leak
        if kind[0] in ("width", "count"):
            need(sel["weight"] is not None or sel["never"], f"head {l}.{h}: BOS has no weight to count against")
            if sel["never"]:  # nothing is ever selected: BOS is alone
                w = np.zeros(P.size(owner)); alone = (tail + f.copy) * b_ab + leak; return owner, w + b[0] - alone, w + b[1] + alone
            o, ab = (o_lo.min(), o_hi.max()), o_ab.max()
            w = P.num(owner) if isinstance(owner, int) else np.arange(n + 1.0)
            c = math.exp(sel["weight"][1]); chain = (c * w + w * (w + 1) / 2) / (c + w)  # BOS first, then key after key: no order is worse
            rho = rho1 + 1.01 * f.u * chain + uneven + (f.gamma(np.maximum(w, 1) + 1) if ab else 0.0) + store * 3
            low, high = np.full(len(w), INF), np.full(len(w), -INF)
            for c in map(math.exp, sel["weight"]):
                for x in o:
                    for y in b:
                        v = (w * x + c * y) / (w + c); e = (rho + 2.0**-45) * (w * ab + c * b_ab) / (w + c)
                        low, high = np.minimum(low, v - e), np.maximum(high, v + e)
            none = w == 0  # then BOS is alone
            low, high = np.where(none, b[0] - (tail + f.copy) * b_ab, low), np.where(none, b[1] + (tail + f.copy) * b_ab, high)
            return owner, low - leak, high + leak
        s = P.sops[owner]; op = s["op"]; src = P.sops[op["value"]]
        need(sel["weight"] is None, f"head {l}.{h}: BOS takes part in a mean")
        known = P.computable(op["value"], set(env)); size = len(src["values"])
        need(known or not env, f"head {l}.{h} reads {[self.name(v) for v in names]}, not {src['label']}")
        if not known: low, high, ab = np.full(size, o_lo.min()), np.full(size, o_hi.max()), np.full(size, o_ab.max())
        else:
            codes = P.codes(op["value"], dict(env)); ok = codes >= 0
            low, high, ab = np.full(size, INF), np.full(size, -INF), np.zeros(size)
            np.minimum.at(low, codes[ok], o_lo[ok]); np.maximum.at(high, codes[ok], o_hi[ok]); np.maximum.at(ab, codes[ok], o_ab[ok])
        live = np.isfinite(low); ds = len(s["values"]); lo, hi = np.full(ds, INF), np.full(ds, -INF)
        def put(code, a, z): lo[code] = min(lo[code], a); hi[code] = max(hi[code], z)
        numeric = any(isnum(v) for v in src["values"]); one = P.at_most_one(op["selector"])
        if one or not numeric or P.equal_values(op["selector"], op["value"]):
            if not one and not numeric: P.assumed.add(f"{s['label']} selects at most one key (the program raises otherwise)"); one = True
            for c in np.flatnonzero(live):
                e = (tail + f.copy) * ab[c] if one else (rho1 + f.gamma(n) + uneven) * ab[c]
                if store and not (one and self.fits(low[c], high[c])): e += 2 * store * ab[c]
                need(src["values"][c] in s["index"], f"{s['label']} has no code for {src['values'][c]!r}")
                put(s["index"][src["values"][c]], low[c] - e, high[c] + e)
        else:
            x = src["num"]; isn = live & np.isfinite(x); need(isn.any(), "no numbers to average")
            xs, mid = x[isn], (low[isn] + high[isn]) / 2; a0, a1 = int(np.argmin(xs)), int(np.argmax(xs))
            slope = (mid[a1] - mid[a0]) / (xs[a1] - xs[a0]) if xs[a1] > xs[a0] else 0.0; inter = mid[a0] - slope * xs[a0]
            r_lo, r_hi = (low[isn] - slope * xs - inter).min(), (high[isn] - slope * xs - inter).max()
            one_sign = (low[isn].min() >= 0 or high[isn].max() <= 0) and (ab[isn] == np.maximum(np.abs(low[isn]), np.abs(high[isn]))).all()
            for c in np.flatnonzero(np.isfinite(s["num"])):
                y = slope * s["num"][c] + inter; off = abs(slope) * 1e-9 * max(1, abs(s["num"][c]))
                m = min(big, abs(y) + max(abs(r_lo), abs(r_hi)) + off) if one_sign else big
                e = (rho1 + f.gamma(n) + uneven + store * 3 + 2.0**-45) * m + off
                if one_sign and s["num"][c] == 0 and not f.leak(1) and inter == r_lo == r_hi == 0 and np.abs(xs[xs != 0]).min(initial=INF) > 2e-9 * n: e = 0.0  # a mean of 0 is one of zeros
                put(c, y + r_lo - e, y + r_hi + e)
            for c in np.flatnonzero(live & ~np.isfinite(x)): put(s["index"][src["values"][c]], low[c] - (tail + f.copy) * ab[c], high[c] + (tail + f.copy) * ab[c])
        if not sel["sure"] and value(op["default"]) in s["index"]:  # else the program is not defined where nothing is selected
            d = value(op["default"]); need(d in s["index"], f"{s['label']} has no code for its default"); put(s["index"][d], b[0] - (tail + f.copy) * b_ab, b[1] + (tail + f.copy) * b_ab)
        gone = ~np.isfinite(lo); lo[gone] = hi[gone] = 0.0
        return owner, lo - leak, hi + leak
    def fits(self, lo, hi): return lo == hi and (lo == 0 or abs(lo) <= 2.0**self.f.ps * grid(lo))

    def add_identities(self, state):
        """Counts of heads that add up to the width of a selector of the program."""
        P = self.P
        for z, names in ((int(z), t) for z, t in self.cert.get("sums", {}).items()):
            terms, names = names, ["c" + t[1:] for t in names]
            if any(z == i for i, _ in self.identities) or not all(t in self.counts for t in names): continue
            s = P.sops[z]["op"]["selector"]
            need(all(t[0] == "c" or P.sops[z]["op"].get("value") == self.summed_value.get(t) for t in terms) and (terms[0][0] == "s") == (P.sops[z]["op"]["kind"] == "sum"), "sums of other values")
            qv = set().union(*(self.counts[t][0] for t in names)); kv = set().union(*(self.counts[t][1] for t in names))
            qv, kv = ({v for v in x if isinstance(v, str) or v in P.sops} for x in (qv, kv))
            qenv, nq = self.combos(qv, state) if qv else ({}, 1); kenv, nk = self.combos(kv, state) if kv else ({}, 1)
            want, ok = (np.broadcast_to(a, (nq, nk)) for a in P.selected(s, dict(qenv), dict(kenv))); want = want.astype(int); tables = []
            for t in names:
                tq, tk, M = self.counts[t]
                def rows(small, big):
                    if not small: return np.zeros(len(next(iter(big.values()))) if big else 1, int)
                    keys = {tuple(int(small[v][i]) for v in sorted(small, key=str)): i for i in range(len(next(iter(small.values()))))}
                    return np.array([keys[tuple(int(big[v][i]) for v in sorted(small, key=str))] for i in range(len(next(iter(big.values()))))])
                tables.append(M[np.ix_(rows(tq, qenv), rows(tk, kenv))].astype(int))
            for signs in itertools.product((1, -1), repeat=len(names)):
                if (sum(s * t for s, t in zip(signs, tables)) == want)[ok].all():
                    self.identities.append((z, list(zip(terms, map(float, signs))))); break
            else: raise Reject(f"the heads {names} do not add up to {P.sops[z]['label']}")

    # ---------------------------------------------------------------- all of it
    def outputs(self, state):
        P, f = self.P, self.f; wu = self.w["unembed.W_U"]
        reads = self.substituted(read(state, wu, np.zeros(wu.shape[1])))
        for (name, z), (_, start, stop) in zip(P.outputs, P.slices):
            cols = np.arange(start, stop)
            names = {v for v, r in reads.items() if len(r.lo) > 1 and varying(r)[cols].any()}
            s = P.sops[z]
            wanted = names | P.leaves(z, names)
            if not wanted: env, n, codes = {}, 1, np.zeros(1, int)
            else:
                env, n = self.combos(wanted, state)
                codes = P.codes(z, dict(env)); keep = codes >= 0; env = {v: c[keep] for v, c in env.items()}; codes = codes[keep]; n = len(codes)
            r = joined(reads, names, env, cols, n); e = rounded(r, f); lo, hi = r.lo - e, r.hi + e
            if s["encoding"] == "categorical":
                mine = np.take_along_axis(lo, codes[:, None], 1)[:, 0]; others = hi.copy(); np.put_along_axis(others, codes[:, None], -INF, 1)
                bad = mine <= others.max(1)
                need(not bad.any(), f"output {name}: {s['values'][codes[bad.argmax()]]!r} is not surely the largest logit ({float((others.max(1) - mine).max()):.3g})")
                self.margin = float((mine - others.max(1)).min())
            else:
                num = s["num"]; ordered = np.sort(num[np.isfinite(num)]); mids = (ordered[1:] + ordered[:-1]) / 2
                x = num[codes]; isn = np.isfinite(x)
                first = np.append(True, np.diff(ordered) > 1e-9 * np.maximum(1, np.abs(ordered[1:]))); group = np.cumsum(first) - 1
                starts = np.flatnonzero(first); stops = np.append(starts[1:], len(ordered)) - 1  # values that differ by rounding only are one
                at = group[np.searchsorted(ordered, x[isn])]
                low = np.append(-INF, mids)[starts][at]; high = np.append(mids, INF)[stops][at]
                bad = (lo[isn, 0] <= low) | (hi[isn, 0] >= high)
                need(not bad.any(), f"output {name}: {x[isn][bad.argmax()]} may be read as another value: [{lo[isn,0][bad.argmax()]}, {hi[isn,0][bad.argmax()]}]" if bad.any() else "")
                if lo.shape[1] > 1:
                    need((lo[~isn, 1] > 0.5).all() and (hi[isn, 1] < 0.5).all(), f"output {name}: None is not told apart")
                else: need(isn.all(), f"output {name}: None has no logit")
                self.margin = float(min((lo[isn, 0] - low).min(), (high - hi[isn, 0]).min()))
    def run(self):
        try: return self.prove()
        except (KeyError, IndexError, ValueError, TypeError, AttributeError, StopIteration, ZeroDivisionError, OverflowError) as e: raise Reject(f"malformed: {e!r}") from e
    def prove(self):
        tok, bos, pad = self.embed()
        for l in range(self.layers):
            hint = self.cert["layers"][l]
            if self.w[f"blocks.{l}.attn.W_Q"].shape[0]:
                tok = self.attention(tok, bos, pad, l, hint["heads"]); self.add_identities(tok)
            owners = {int(j): o for j, o in hint["mlp"].items()}
            tok = self.mlp(tok, l, owners); bos = self.mlp(bos, l, {}, "B"); pad = self.mlp(pad, l, {}, "P")
            for s in (tok, bos, pad):
                for b in s.values(): need(np.isfinite(b.lo).all() and np.isfinite(b.hi).all() and max(np.abs(b.lo).max(), np.abs(b.hi).max()) < 1e30, "numbers too large")
            self.trace = (tok, bos, pad)
        self.outputs(tok)
        return self

def _unused():
  pass
if False and __name__ == "__main__":
    folder = sys.argv[1]; cert = json.load(open(f"{folder}/certificate.json"))
    for name in sys.argv[2:] or ["float32"]:
        t = time.time()
        try:
            c = Checker(folder, cert, FORMATS[name]).run(); print(f"{name}: ACCEPTED, margin {c.margin:.3g}, {time.time()-t:.2f} s", *(f"\n  assuming: {a}" for a in sorted(c.P.assumed)))
        except Reject as e: print(f"{name}: REJECTED: {e} ({time.time()-t:.2f} s)")
