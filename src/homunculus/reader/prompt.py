"""The prompt of the reader: the question, the lines of the page as text, and the question again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from homunculus.reader.lines import CELL_SEPARATOR, ROW_SEPARATOR, Line, clean_text, group_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Order = Literal["question-first", "page-first"]

START = "<|im_start|>user"
ASSISTANT = "<|im_end|>\n<|im_start|>assistant\n"
END = "<|im_end|>"
NOT_FOUND = "not on the page"  # the answer to a question that the page does not answer
MAX_TOKENS = 512  # of the page's text
MAX_QUESTION = 64  # tokens
MAX_ANSWER = 48  # tokens, with the end


def build_prompt(
    tokenizer: Tokenizer,
    question: str,
    lines: Sequence[Line],
    scores: Sequence[float] | None = None,
    max_tokens: int = MAX_TOKENS,
    order: Order = "question-first",
) -> list[int]:
    """Token ids of the prompt, ready for the answer.

    Args:
        question: its first 64 tokens are used.
        scores: relevance of each line to the question; reading order decides where there are none.
        max_tokens: tokens of the page's text. Of a longer page the lines with the highest scores are kept.
        order: "question-first" puts the question before and after the page, "page-first" only after it.
    """
    page = [token for _, ids in encode_page(tokenizer, lines, scores, max_tokens) for token in ids]
    return frame_page(tokenizer, question, page, order)


def encode_page(
    tokenizer: Tokenizer, lines: Sequence[Line], scores: Sequence[float] | None = None, max_tokens: int = MAX_TOKENS
) -> list[tuple[int, list[int]]]:
    """The kept lines in reading order: index and token ids of each, the separator before it included.

    The concatenated ids are those of "\\n" + format_lines(kept lines).
    """
    rows = group_rows(lines)
    texts = {i: clean_text(lines[i].text) for row in rows for i in row}
    first = _encode(tokenizer, {row[0]: ROW_SEPARATOR + texts[row[0]] for row in rows})
    later = _encode(tokenizer, {i: CELL_SEPARATOR + texts[i] for row in rows for i in row[1:]})
    if sum(map(len, first.values())) + sum(map(len, later.values())) > max_tokens:
        first |= _encode(tokenizer, {i: ROW_SEPARATOR + texts[i] for i in later})  # any line may become a row's first
        costs = {i: max(len(first[i]), len(later.get(i, ()))) for row in rows for i in row}
        kept = _best(costs, scores, max_tokens)
        rows = [found for row in rows if (found := [i for i in row if i in kept])]
    return [(i, later[i] if place else first[i]) for row in rows for place, i in enumerate(row)]


def start_ids(tokenizer: Tokenizer) -> list[int]:
    """What every prompt begins with; the cells of a photograph stand behind it."""
    return list(tokenizer.encode(START, add_special_tokens=False).ids)


def frame_page(tokenizer: Tokenizer, question: str, page: Sequence[int], order: Order = "question-first") -> list[int]:
    """Token ids of the prompt around an encoded page."""
    texts = [START, ROW_SEPARATOR + clean_text(question), ASSISTANT]
    start, question_ids, assistant = (
        found.ids for found in tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    )
    question_ids = question_ids[: 1 + MAX_QUESTION]
    before = [] if order == "page-first" else question_ids
    return [*start, *before, *page, *question_ids, *assistant]


def answer_ids(tokenizer: Tokenizer, answer: str, max_tokens: int = MAX_ANSWER) -> list[int]:
    """Token ids of an answer and its end; empty if there are more than `max_tokens`."""
    ids = list(tokenizer.encode(clean_text(answer) + END, add_special_tokens=False).ids)
    return ids if len(ids) <= max_tokens else []


def _encode(tokenizer: Tokenizer, texts: dict[int, str]) -> dict[int, list[int]]:
    found = tokenizer.encode_batch_fast(list(texts.values()), add_special_tokens=False) if texts else []
    return {i: encoding.ids for i, encoding in zip(texts, found, strict=True)}


def _best(costs: dict[int, int], scores: Sequence[float] | None, max_tokens: int) -> set[int]:
    """The lines that fit, best first or in the order of `costs`; a line too long for what is left is skipped."""
    ranked = list(costs) if scores is None else sorted(costs, key=lambda i: -scores[i])
    kept, tokens_left = set(), max_tokens
    for i in ranked:
        if costs[i] <= tokens_left:
            kept.add(i)
            tokens_left -= costs[i]
    return kept
