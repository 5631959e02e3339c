"""Builds the wide pools of words that training pages are written with.

`python -m homunculus.train.synth.corpus --out texts.json.gz [--corpus words.jsonl ...]`; all is plain ASCII.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from homunculus.errors import InputError
from homunculus.reader.letters import folded
from homunculus.runtime.files import replacing
from homunculus.train.synth.text import CORPUS
from homunculus.train.synth.vocabulary import items, own_pools

NEEDS = "building the texts needs two packages more: pip install wordfreq Faker"
LOCALES = items("en_US|en_GB|en_IN|en_IE|en_NZ|en_KE|de_DE|fr_FR|es_MX|it_IT|nl_NL|id_ID|sv_SE|pt_BR|fi_FI|yo_NG|tr_TR")
FIRM_WORDS = re.compile(
    r"\b(sdn|bhd|inc|ltd|corp|corporation|company|llc|enterprise|co|gmbh|limited|trading)\b\.?", re.I
)
PLACE_WORDS = re.compile(r"\b(jalan|jln|street|avenue|ave|road|taman|lorong|p\.?o\.? box|blvd|drive|lot|st)\b", re.I)
TILL_WORDS = re.compile(
    r"total|round|cash|gst|amount|refund|card|change|tax|thank|price|qty|invoice|exchange|receipt", re.I
)
LABEL = re.compile(r"([A-Za-z][A-Za-z .,/&#'()-]{1,34}?)\s*:")
PRICE = re.compile(r"\d+[.,]\d\d\b")


def plain(text: str) -> str:
    """Printable ASCII in one line; a text of other letters comes back empty."""
    bare = folded(text)
    return bare if bare.isascii() and bare.isprintable() else ""


def read_lines(path: str | os.PathLike[str]) -> Iterator[list[str]]:
    """The lines of each page of a words.jsonl file: words that follow each other on one row are joined."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            for row in file:
                yield _joined([word for word in json.loads(row)["words"] if word.get("score", 1.0) >= 0.95])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"cannot read {path} as words.jsonl, one page of words with boxes a line: {error}") from error


def _joined(words: list[dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    right = middle = -1e9
    for word in words:
        (x0, y0, x1, y1), text = word["box"], plain(word["text"])
        height = y1 - y0
        if lines and abs((y0 + y1) / 2 - middle) < 0.4 * height and -0.2 * height < x0 - right < 0.6 * height:
            lines[-1] += " " + text
        else:
            lines.append(text)
        right, middle = x1, (y0 + y1) / 2
    return [line.strip() for line in lines if line.strip()]


def sorted_lines(lines: list[str]) -> Iterator[tuple[str, str]]:
    """What the lines of a page are, as (kind, text): labels, firms, addresses, titles, sentences and products."""
    for i, line in enumerate(lines):
        words, letters = line.split(), sum(map(str.isalpha, line)) / len(line)
        label = LABEL.match(line)
        if label and len(label[1].split()) <= 5:
            yield "key", label[1].strip()
        elif PLACE_WORDS.search(line) and any(map(str.isdigit, line)) and 3 <= len(words) <= 12:
            yield "address", line
        elif FIRM_WORDS.search(" ".join(words[-2:])) and 2 <= len(words) <= 7 and letters > 0.7:
            if not any(word[0].islower() for word in words if word not in ("of", "and", "the")):
                yield "company", line
        elif 6 <= len(words) <= 20 and letters > 0.7 and not line.isupper():
            yield "sentence", line
        elif 2 <= len(words) <= 8 and letters > 0.8 and i < 6 and all(word[0].isupper() for word in words):
            yield "title", line
        elif 2 <= len(words) <= 6 and letters > 0.6 and _sold(line, lines[i + 1 : i + 4]):
            yield "product", line


def _sold(line: str, following: list[str]) -> bool:
    """Whether a line reads as an article on a receipt: capitals with a price soon after."""
    return line.isupper() and not TILL_WORDS.search(line) and bool(PRICE.search(" ".join(following)))


def corpus_pools(paths: Iterable[str | os.PathLike[str]], common: set[str]) -> dict[str, list[str]]:
    """The pools that pages of real words give, without repeats; `rare` are those words that are not `common`."""
    found: dict[str, dict[str, None]] = {}
    for path in paths:
        for lines in read_lines(path):
            for kind, text in sorted_lines(lines):
                found.setdefault(kind, {})[text] = None
            for word in (word.strip(".,:;()[]'\"*-") for line in lines for word in line.split()):
                if word.isalpha() and 2 <= len(word) <= 20:
                    kind, text = ("word", word.lower()) if word.lower() in common else ("rare", word)
                    found.setdefault(kind, {})[text] = None
    return {CORPUS + kind: list(texts) for kind, texts in found.items()}


def wide_pools(rng: Random) -> dict[str, list[str]]:
    """Own pools widened by the words of wordfreq, the most frequent first, and by the people and places of Faker."""
    try:
        from faker import Faker
        from wordfreq import top_n_list
    except ImportError as error:
        raise InputError(NEEDS) from error
    listed = [word for word in top_n_list("en", 160_000) if re.fullmatch(r"[a-z]+('[a-z]+)?", word)]
    words = [word for word in listed[:50_000] if len(word) > 1 or word in "ai"]
    pools = own_pools(rng, words[:20_000], count=16_000)
    pools["word"] = words
    pools["rare"] += listed[20_000:100_000]
    for locale in LOCALES:
        fake = Faker(locale)
        fake.seed_instance(rng.getrandbits(32))
        for kind, name, count in FAKED:
            if (kind, locale) == ("city", "it_IT"):  # Faker keeps these in a set, whose order changes between runs
                continue
            if kind in ("first", "last", "street", "city") or locale.startswith("en"):
                pools[kind] += [plain(getattr(fake, name)()) for _ in range(count) if hasattr(fake, name)]
    pools["rare"] += pools["first"] + pools["last"]
    return {kind: list(dict.fromkeys(filter(None, pool))) for kind, pool in pools.items()}


FAKED = (
    ("first", "first_name", 1500),
    ("last", "last_name", 1500),
    ("company", "company", 1500),
    ("street", "street_name", 1000),
    ("city", "city", 600),
    ("state", "state", 100),
    ("country", "country", 400),
    ("job", "job", 500),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: build the pools and write them."""
    parser = argparse.ArgumentParser(prog="python -m homunculus.train.synth.corpus", description="Build word pools.")
    parser.add_argument("--out", required=True, help="the .json.gz file to write")
    parser.add_argument("--corpus", nargs="*", default=[], metavar="WORDS_JSONL", help="pages of real words to add")
    parser.add_argument("--plain", action="store_true", help="take our small vocabulary, not wordfreq and Faker")
    options = parser.parse_args(arguments)
    try:
        pools = own_pools(Random(0)) if options.plain else wide_pools(Random(0))
        pools |= corpus_pools(options.corpus, common=set(pools["word"][:30_000]))
        with replacing(options.out) as unfinished:
            unfinished.write_bytes(gzip.compress(json.dumps(pools).encode("ascii"), 9, mtime=0))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(", ".join(f"{len(pool)} {kind}" for kind, pool in pools.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
