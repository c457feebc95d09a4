"""Answers to requests, and refusals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tracr.errors import Diagnostic, TracrError
from tracr.text.places import Place

__all__ = ["RefusedRequest", "Reply", "error_json", "json_reply"]

JSON = "application/json"


@dataclass(frozen=True)
class Reply:
    """The answer to a request: the status, the body, its media type, and for downloads the name of the file."""

    status: int
    body: bytes
    kind: str = JSON
    filename: str = ""
    retry_after: int = 0
    """Seconds after which the client may ask again; 0 if asking again does not help."""


class RefusedRequest(TracrError):
    """A request that the server refuses, with the status of the answer."""

    def __init__(
        self, what: str, *, status: int = 422, expression: object = "", hint: str = "", retry_after: int = 0
    ) -> None:
        super().__init__(what, expression=expression, hint=hint)
        self.status, self.retry_after = status, retry_after

    @property
    def reply(self) -> Reply:
        """The answer that says so."""
        return json_reply({"error": error_json(self.diagnostic)}, self.status, self.retry_after)


def json_reply(content: Any, status: int = 200, retry_after: int = 0) -> Reply:
    """An answer in JSON."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Reply(status, text.encode("ascii"), retry_after=retry_after)


def error_json(problem: Diagnostic) -> dict[str, Any]:
    """A problem for the page: the message, the hint, and the place in the text, counted from 1, if it is known.

    `end_line` and `end_column` are the place after the last character.
    """
    place = problem.origin
    start: tuple[int | None, int | None] = (None, None)
    end = start
    if isinstance(place, Place):
        start, end = place.source.position(place.span[0]), place.source.position(place.span[1])
    return {
        "message": problem.what if isinstance(place, Place) else problem.sentence,
        "hint": problem.hint,
        "line": start[0],
        "column": start[1],
        "end_line": end[0],
        "end_column": end[1],
    }
