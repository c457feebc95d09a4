"""Tokens, ids and labels with the methods that TransformerLens users expect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from tracr.errors import InputError

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["LensTokens"]

Input = Any  # tokens; or ids, as a tensor or an array


class LensTokens:
    """Converts between tokens and ids, and between output values and logits.

    Inputs are ids of tokens; outputs are logits of values. Tools name an answer with `to_single_token`, so it gives
    the number of a logit.
    """

    if TYPE_CHECKING:
        cfg: Any
        device: torch.device
        W_U: torch.Tensor

        @property
        def compiled(self) -> DesignedModel:
            """The model that has the tokens and the outputs."""

    tokenizer = None
    """There is no tokenizer: use `to_tokens` and `to_string`."""

    def to_tokens(self, input: Input, prepend_bos: bool | None = None, padding_side: str | None = None) -> torch.Tensor:
        """Ids of an input or a list of inputs, with BOS first unless `prepend_bos` is off; ids stay unchanged."""
        if padding_side not in (None, "right"):
            raise InputError("compiled models need PAD after the tokens", hint="leave padding_side out")
        if isinstance(input, torch.Tensor):
            return input
        if isinstance(input, np.ndarray):
            return torch.tensor(input, device=self.device)
        ids = torch.tensor(self.compiled.encode(input), device=self.device)
        wanted = self.cfg.default_prepend_bos if prepend_bos is None else prepend_bos
        return ids if wanted else ids[:, 1:]

    def to_str_tokens(self, input: Input, prepend_bos: bool | None = None) -> Any:
        """The tokens of an input as text, BOS included unless `prepend_bos` is off; a list of that for several."""
        ids = self.to_tokens(input, prepend_bos)
        rows = [self._texts(row) for row in (ids[None] if ids.ndim == 1 else ids).tolist()]
        return rows[0] if len(rows) == 1 else rows

    def to_string(self, tokens: Input) -> str | list[str]:
        """Ids as text: joined if all are single characters, else separated by spaces; a list for a batch."""
        ids = torch.as_tensor(tokens)
        if ids.ndim > 2:
            raise InputError(f"ids have the shape {tuple(ids.shape)}", hint="pass [position] or [batch, position]")
        if ids.ndim == 2:
            return [self._text(row) for row in ids.tolist()]
        return self._text(ids.reshape(-1).tolist())

    def _texts(self, ids: Sequence[int]) -> list[str]:
        return list(map(str, self.compiled.vocabulary.decode(ids)))

    def _text(self, ids: Sequence[int]) -> str:
        texts = self._texts(ids)
        return ("" if all(len(text) == 1 for text in texts) else " ").join(texts)

    def to_single_str_token(self, int_token: int) -> str:
        """The text of an id."""
        return self._texts([int_token])[0]

    def get_token_position(
        self, single_token: Any, input: Input, mode: Literal["first", "last"] = "first", prepend_bos: bool | None = None
    ) -> int:
        """The position of a token or an id in an input."""
        (ids,) = self.to_tokens(input, prepend_bos).reshape(1, -1).tolist()
        wanted = single_token if not isinstance(input, torch.Tensor) else int(single_token)
        values = ids if isinstance(input, torch.Tensor) else list(self.compiled.vocabulary.decode(ids))
        found = [place for place, value in enumerate(values) if value == wanted]
        if not found:
            raise InputError(f"{single_token!r} is not in {self.to_string(ids)!r}", hint="give a token of the input")
        return found[0 if mode == "first" else -1]

    def to_single_token(self, value: str) -> int:
        """The number of the logit whose label is `value`: a value of the output, or "output:value"."""
        labels = [(label, label.removeprefix(f"{out.name}:")) for out in self.compiled.outputs for label in out.labels]
        found = [number for number, names in enumerate(labels) if value in names]
        if len(found) != 1:
            hint = f"they are {', '.join(label for label, _ in labels)}"
            raise InputError(f"{value!r} names {len(found)} logits", hint=hint)
        return found[0]

    def tokens_to_residual_directions(self, tokens: Any) -> torch.Tensor:
        """The unembedding directions of logits, given by number or label: [..., d_model]."""
        if isinstance(tokens, str):
            return self.W_U.T[self.to_single_token(tokens)]
        if isinstance(tokens, list | tuple):
            return torch.stack([self.tokens_to_residual_directions(token) for token in tokens])
        return self.W_U.T[tokens]
