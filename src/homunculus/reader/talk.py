"""How a page, a question and an answer stand in what the language model reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BEFORE = "<|im_start|>user\n"  # then the cells of the page, the question, and what was read there
NOTED = "\n{}\n"
ASKED = "\n{}<|im_end|>\n<|im_start|>assistant\n"
END = "<|im_end|>"
NOTES, ASK, REPLY = 256, 44, 48  # tokens of notes, of a question with what stands around it, of an answer with its end
PAD = 0


def prompt_ids(tokenizer: Tokenizer, question: str, noted: list[int]) -> list[int]:
    """What follows the page: the question, what was read there, and the question again.

    Whoever reads from left to right reads notes with other eyes when he knows what they are for.
    """
    asked = question_ids(tokenizer, question)
    return asked[: -tail(tokenizer)] + noted + asked


def tail(tokenizer: Tokenizer) -> int:
    """How many tokens of a question's are not the question itself but what follows it."""
    return len(_ids(tokenizer, ASKED.format(""))) - 1  # without the line break before it


def question_ids(tokenizer: Tokenizer, question: str, most: int = ASK) -> list[int]:
    """A question as it follows the page; of a long one the beginning is kept."""
    question = question.replace("<|", "< |").strip()  # a question cannot end itself
    whole = _ids(tokenizer, ASKED.format(question))
    last = tail(tokenizer)
    return whole if len(whole) <= most else whole[: most - last] + whole[-last:]


def note_ids(tokenizer: Tokenizer, pages: Sequence[str], most: int = NOTES) -> list[list[int]]:
    """What was read on each page, as it follows the page."""
    texts = [NOTED.format(page.replace("<|", "< |")) for page in pages]
    return [list(found.ids[:most]) for found in tokenizer.encode_batch(texts, add_special_tokens=False)]


def reply_ids(tokenizer: Tokenizer, answer: str, most: int = REPLY) -> list[int]:
    """An answer and its end; none if it is too long to be learned."""
    ids = _ids(tokenizer, answer.strip() + END)
    return ids if len(ids) <= most else []


def row(ids: list[int], length: int) -> Tensor:
    """Ids with PAD behind them. [length] int32"""
    return torch.tensor(ids[:length] + [PAD] * (length - len(ids)), dtype=torch.int32)


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False).ids)
