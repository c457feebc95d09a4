"""The index of the zoo: a card for each program, with its picture, its sizes and what is known of its model."""

from __future__ import annotations

import hashlib
import html
import json
from dataclasses import dataclass
from pathlib import Path

import tracr
from docs.generator.places import ROOT
from tracr import zoo
from tracr.zoo import Entry, ZooFacts

__all__ = ["Card", "zoo_index"]

HEAD = """# The zoo in pictures

{count} programs, by family: what each computes on one input, drawn by `tracr.draw`. Click on a picture to enlarge it.
[The zoo](zoo.md) explains how to compile them; `tracr explore zoo:NAME --open` opens the explorer page of one.

Sizes are those of the default model at level 1: the number of tokens and the longest input; layers; the most heads in
one layer. "Easy", "medium" and "hard" say how large the circuit is, not how hard it is to find. "Certified": the
checker accepts this model, its outputs are proved for every input ([certificates](certificate.md)). "Twins": trained
transformers with the same mechanism ([natural models](natural.md)), those admitted of those trained.

<div class="zoo-filter"><label>Find <input type="search" placeholder="a name, a tag, a word"></label>
<output></output></div>
"""


@dataclass(frozen=True)
class Card:
    """What the index says of a program."""

    entry: Entry
    known: ZooFacts

    @property
    def facts(self) -> list[str]:
        """Sizes and what is known, as short texts."""
        entry, known = self.entry, self.known
        return [
            known.difficulty,
            f"{len(entry.vocab)} tokens, length {entry.max_seq_len}",
            f"{_plural(known.layers, 'layer')}, {_plural(known.heads, 'head')}",
            *(["causal"] if entry.causal else []),
            *(["certified"] if 1 in known.certified else []),
            *([f"twins: {known.twins.admitted} of {known.twins.trained} admitted"] if known.twins else []),
        ]

    @property
    def html(self) -> str:
        entry, picture = self.entry, picture_path(self.entry)
        tags = "".join(f"<li><button>{html.escape(tag)}</button></li>" for tag in entry.tags)
        facts = " · ".join(map(html.escape, self.facts))
        return (
            f'<section class="zoo-card" id="{entry.name}"><a class="picture" href="{picture}">'
            f'<img src="{picture}" alt="{html.escape(entry.name)} on one input" loading="lazy"></a>'
            f'<h3><a href="#{entry.name}">{entry.name}</a></h3><p>{html.escape(entry.description)}</p>'
            f'<p class="facts">{facts}</p><ul class="tags">{tags}</ul></section>'
        )


def picture_path(entry: Entry) -> str:
    """The path of the drawing of a program."""
    return f"zoo/{entry.name}.svg"


def zoo_index(cache_folder: Path) -> dict[str, str]:
    """The page and the pictures by their paths. They are kept in a folder, and made again if a source has changed."""
    kept = cache_folder / f"zoo-{_digest()}.json"
    if kept.is_file():
        made: dict[str, str] = json.loads(kept.read_text(encoding="utf-8"))
        return made
    made = {"zoo-index.md": _page([Card(entry, zoo.facts(entry.name)) for entry in zoo.entries()])}
    for entry in zoo.entries():
        made[picture_path(entry)] = tracr.draw(entry.program, entry.shown, causal=entry.causal).svg
    cache_folder.mkdir(parents=True, exist_ok=True)
    for old in cache_folder.glob("zoo-*.json"):
        old.unlink()
    kept.write_text(json.dumps(made), encoding="utf-8")
    return made


def _page(cards: list[Card]) -> str:
    families: dict[str, list[Card]] = {}
    for card in cards:
        families.setdefault(card.entry.tags[0], []).append(card)
    parts = [HEAD.format(count=len(cards))]
    for family, members in families.items():
        inside = "\n".join(card.html for card in members)
        parts.append(f'## {family.capitalize()}\n\n<div class="zoo">\n{inside}\n</div>')
    return "\n\n".join(parts) + "\n"


def _digest() -> str:
    """A digest of everything that the index is made of."""
    sources = [*ROOT.glob("src/tracr/**/*.py"), *ROOT.glob("src/tracr/zoo/*.json"), Path(__file__)]
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
