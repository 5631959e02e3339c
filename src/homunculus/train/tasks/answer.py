"""What the language model's LoRA learns: answers to questions from the text lines of a page."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus.reader.language import Language, fingerprint
from homunculus.reader.lora import Lora
from homunculus.runtime.decoder import run_layers
from homunculus.train.tasks.base import Losses, Task

IGNORED = -1


class AnswerTask(Task):
    """Losses of the answers to batches of `questions.lessons.Lessons`.

    Args:
        lora: attached to the language model; only its matrices are trained and saved.
        language: the language model, frozen.
    """

    model: Lora
    bf16_on_cpu = True

    def __init__(self, lora: Lora, language: Language, seed: int = 0) -> None:
        super().__init__(lora, seed)
        self.header = {"fits": fingerprint(language.model), "sizes": lora.sizes}
        lora.attach(language.model)
        self.frozen: tuple[Any] = (language.model,)  # in a tuple: neither trained nor saved

    def layers_to_compile(self) -> list[nn.Module]:
        """The language model's layers."""
        return list(self.frozen[0].model.layers)

    def forward(self, ids: Tensor, at: Tensor, answer: Tensor) -> Losses:
        """Cross-entropy of the answer tokens, and the share of rows whose tokens are all predicted.

        Shapes: ids [B, T]; at [B, A], positions whose next token is predicted; answer [B, A], -1 is ignored.
        """
        logits = self.logits(ids, at)  # [B, A, vocabulary]
        total = F.cross_entropy(logits.flatten(0, 1).float(), answer.flatten(), ignore_index=IGNORED, reduction="sum")
        known = answer != IGNORED
        right, used = ((logits.argmax(-1) == answer) | ~known).all(1), known.any(1)
        return {
            "answer": total / known.sum().clamp(min=1),
            "exact": (right & used).sum() / used.sum().clamp(min=1),
        }

    def logits(self, ids: Tensor, at: Tensor) -> Tensor:
        """Logits of the next token at some positions. [B, A, vocabulary]

        Padding stands behind the text, so causal attention needs no mask.
        """
        language = self.frozen[0]
        body = language.model
        position_ids = torch.arange(ids.shape[1], device=ids.device)[None]
        x = run_layers(body, body.embed_tokens(ids), position_ids)  # [B, T, D]
        x = x.gather(1, at[..., None].expand(-1, -1, x.shape[2]))  # [B, A, D]
        return cast(Tensor, language.lm_head(body.norm(x)))
