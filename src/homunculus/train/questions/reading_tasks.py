"""Reading tasks: what a line says, which word follows, what stands above or below; made from the lines alone."""

from __future__ import annotations

import random
from collections.abc import Sequence

from homunculus.reader.lines import Line
from homunculus.train.questions.geometry import Geometry
from homunculus.train.questions.pages import TextQuestion

MAX_ANSWER = 60  # characters
MAX_NAMED = 40  # characters of a line that a question names

STARTS = (
    'Read the line that begins with "{}".',
    'What does the line that starts with "{}" say?',
    'Which line begins with "{}"?',
)
CONTAINS = (
    'Read the line with the word "{}".',
    'What does the line that contains "{}" say?',
    'Which line mentions "{}"?',
)
FOLLOWS = ('Which word comes after "{}"?', 'What is the word after "{}"?', 'Which word follows "{}"?')
REST = ('How does the line "{} ..." go on?', 'Continue: "{} ..."', 'Complete the line "{} ..."')
BELOW = ('What stands below "{}"?', 'Read the line under "{}".', 'What is written beneath "{}"?')
ABOVE = ('What stands above "{}"?', 'Read the line over "{}".', 'What is written above "{}"?')


def reading_task(lines: Sequence[Line], rng: random.Random) -> TextQuestion | None:
    """A reading task about one line of the page; None if the line drawn does not allow one."""
    at = rng.randrange(len(lines))
    page = "\n".join(line.text for line in lines).lower()
    task = rng.choices((_starts, _contains, _follows, _rest, _neighbour), (3, 3, 3, 3, 4))[0]
    found = task(lines, at, page, rng)
    return found if found is not None and 0 < len(found.answer) <= MAX_ANSWER else None


def _starts(lines: Sequence[Line], at: int, page: str, rng: random.Random) -> TextQuestion | None:
    words = lines[at].text.split()
    begin = " ".join(words[:2])
    if len(words) < 3 or page.count(begin.lower()) > 1:
        return None
    return TextQuestion(rng.choice(STARTS).format(begin), lines[at].text, ((at,),), "reading")


def _contains(lines: Sequence[Line], at: int, page: str, rng: random.Random) -> TextQuestion | None:
    words = lines[at].text.split()
    unique = [word for word in words if len(word) > 3 and page.count(word.lower()) == 1]
    if len(words) < 2 or not unique:
        return None
    return TextQuestion(rng.choice(CONTAINS).format(rng.choice(unique)), lines[at].text, ((at,),), "reading")


def _follows(lines: Sequence[Line], at: int, page: str, rng: random.Random) -> TextQuestion | None:
    words = lines[at].text.split()
    unique = [i for i, word in enumerate(words[:-1]) if len(word) > 1 and page.count(word.lower()) == 1]
    if not unique:
        return None
    i = rng.choice(unique)
    return TextQuestion(rng.choice(FOLLOWS).format(words[i]), words[i + 1], ((at,),), "reading")


def _rest(lines: Sequence[Line], at: int, page: str, rng: random.Random) -> TextQuestion | None:
    words = lines[at].text.split()
    if len(words) < 4 or page.count(" ".join(words[:2]).lower()) > 1:
        return None
    cut = rng.randint(2, len(words) - 1)
    return TextQuestion(rng.choice(REST).format(" ".join(words[:cut])), " ".join(words[cut:]), ((at,),), "reading")


def _neighbour(lines: Sequence[Line], at: int, page: str, rng: random.Random) -> TextQuestion | None:
    text = lines[at].text
    if len(text) < 3 or len(text) > MAX_NAMED or page.count(text.lower()) > 1:
        return None
    geometry, under = Geometry.of(lines), rng.random() < 0.6
    other = geometry.below(at) if under else next(iter(geometry.above(at)), None)
    if other is None or abs(lines[other].box[1] - lines[at].box[1]) > 3.5 * geometry.heights[at]:
        return None
    asked = rng.choice(BELOW if under else ABOVE).format(text)
    return TextQuestion(asked, lines[other].text, ((other, at),), "neighbour")
