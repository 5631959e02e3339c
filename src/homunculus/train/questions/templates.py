"""How automatic questions are worded, and the patterns of what they ask for."""

from __future__ import annotations

import random
import re

JOIN = "\t"  # between the names of a question that is not worded yet

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)[a-z]*\.?"
PATTERNS = {
    "date": re.compile(
        rf"\b(?:\d{{1,2}}[/-]\d{{1,2}}[/-]\d{{2,4}}|{_MONTH} ?\d{{1,2}},? ?\d{{4}}|\d{{1,2}} {_MONTH} \d{{4}})\b"
    ),
    "phone": re.compile(r"\(?\b\d{3}\)?[ /-]{1,2}\d{3}[ -]\d{4}\b"),
    "time": re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]\.?m\b\.?)?", re.I),
    "email": re.compile(r"[\w.-]+@\w[\w-]*(?:\.\w+)*\.[A-Za-z]{2,}"),
    "amount": re.compile(r"\$ ?\d[\d,]*(?:\.\d\d)?"),
    "percent": re.compile(r"\b\d+(?:\.\d+)? ?%"),
    "person": re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof)\. (?:[A-Z][\w.'-]*,? ?){1,3}"),
    "zip": re.compile(r"\b[A-Z]{2}\.? +\d{5}\b"),
}
TEMPLATES: dict[str, tuple[str, ...]] = {
    "key": (
        "What is the {0}?",
        "What is {0}?",
        "What is the value of the field '{0}'?",
        "What is the value for {0}?",
        "What is given as {0}?",
        "Which {0} is mentioned?",
        "What is the {0} mentioned in the document?",
        "What is the {0} given in the form?",
        "What does it say for {0}?",
        "What is written next to {0}?",
        "What is mentioned against {0}?",
        "What is filled in for '{0}'?",
        "{0}?",
        "Mention the {0}.",
    ),
    "row": (
        "What is the value for {0}?",
        "What is the value of {0}?",
        "How much is {0}?",
        "What is the figure for {0}?",
        "What number is given for {0}?",
        "{0}?",
    ),
    "cell": (
        "What is the {1} for {0}?",
        "What is the {1} of {0}?",
        "How much is the {1} for {0}?",
        "What is the value of {0} under {1}?",
        "What is the value of {0} in {1}?",
        "What is {0} in {1}?",
        "What is the {0} for {1}?",
        "What is the {1} in the row {0}?",
        "As per the table, what is the {1} for {0}?",
        "{0}, {1}?",
    ),
    "date": (
        "What is the date?",
        "What is the date mentioned?",
        "What date is on the document?",
        "When is it dated?",
        "What is the date given in the document?",
        "Which date is mentioned on the page?",
    ),
    "phone": (
        "What is the telephone number?",
        "What is the phone number mentioned?",
        "Which number can be called?",
        "What is the contact number?",
        "What is the Phone No.?",
    ),
    "time": ("What time is mentioned?", "What is the time?", "At what time?", "What is the time given?"),
    "email": ("What is the email address?", "What is the e-mail ID?", "Which mail address is given?"),
    "amount": ("What amount is mentioned?", "What is the amount?", "How much is it?", "What is the amount given?"),
    "percent": ("What percentage is given?", "What is the percentage mentioned?", "How many percent?"),
    "person": (
        "Who is mentioned?",
        "What is the name of the person?",
        "Which person is named in the document?",
        "Who is named in the document?",
    ),
    "zip": ("What is the state and zip code?", "Which state and zip code are in the address?"),
    "total": (
        "What is the total?",
        "What is the total amount?",
        "How much is the total?",
        "What is the total value given?",
        "What is the amount of the total?",
    ),
    "title": (
        "What is the title of the document?",
        "What is the heading of the page?",
        "What is the title?",
        "What is the main heading?",
        "What is the heading at the top of the page?",
        "What is the document about?",
    ),
    "page_number": (
        "What is the page number?",
        "What is the page number on this page?",
        "Which page is this?",
        "What is the page no. mentioned in the document?",
    ),
}
_CASES = (str, str, str, str.lower, str.lower, str.title, str.upper)
_PREFIXES = ("Please tell me: ", "According to the document, ", "Question: ", "Can you tell me, ", "From the page: ")


def phrase(kind: str, names: str, rng: random.Random) -> str:
    """An automatic question in words, drawn from the templates of its kind."""
    case = rng.choice(_CASES)
    return rng.choice(TEMPLATES[kind]).format(*map(case, names.split(JOIN)))


def reword(question: str, rng: random.Random) -> str:
    """The same question with other capitals, marks or words before it."""
    draw = rng.random()
    if draw < 0.08:
        return question.lower()
    if draw < 0.10:
        return question.upper()
    if draw < 0.16:
        return question.rstrip(" ?")
    if draw < 0.22:
        return rng.choice(_PREFIXES) + question[:1].lower() + question[1:]
    return question
