"""Questions about what a page has and what it has not: mentions, fields and their values, things asked for in vain."""

from __future__ import annotations

import re

from homunculus.reader.prompt import NOT_FOUND
from homunculus.train.synth.documents import wording
from homunculus.train.synth.documents.page import DrawnPage, DrawnQuestion, Pen
from homunculus.train.synth.documents.reasoning import LONG, NO, YES
from homunculus.train.synth.text import kinds_for

# What a page may give, the texts that show it, and beginnings of labels that do.
TOPICS = {
    "fax": ("fax number", ("fax", "facsimile", "telecop"), ("fax", "telefax")),
    "email": ("e-mail address", ("@", "mail"), ("email", "e-mail")),
    "url": ("website", ("www", "http", "web", "url", ".com", ".net", ".org", ".edu", ".gov", ".de", ".info", ".uk",
                        "homepage"), ("web", "url")),
    "phone": ("phone number", ("phone", "tel", "mobile", "call", "cell", "contact"), ("phone", "tel")),
}  # fmt: skip
DIALLED = re.compile(r"\d[-. /)]*\d{3,4}[-. /]?\d{3,4}\b")
STEM = 5  # letters by which words count as the same
PIECE = re.compile(r"[a-z0-9]{3,}")
# Words of which one stands for the others.
SAME = (
    ("clien", "custo", "buyer", "membe", "patie"), ("invoi", "bill", "recei", "inv."), ("accou", "acct", "a/c"),
    ("order", "p.o", "purch"), ("weigh", "wt"), ("depar", "dept", "divis"), ("quant", "qty"),
    ("refer", "ref"), ("emplo", "staff", "worke"), ("size", "dimen"), ("exper", "study", "test"),
    ("shipm", "deliv", "freig"), ("perce", "%", "share", "rate"), ("count", "natio", "origi"),
)  # fmt: skip
SAFE = {"code", "percent", "quantity", "initials", "country", "month"}  # kinds of value that pages seldom have unasked
# Things that other documents give, each with beginnings of words that would tell of it.
FOREIGN = tuple(
    (parts[0], tuple(parts[1:]))
    for parts in (row.split("|") for row in (
        "passport number|passp", "blood type|blood", "flight number|fligh|airli", "date of birth|birth|dob|born|age",
        "license plate|plate|licen", "room number|room", "warranty period|warra|guara", "serial number|seria",
        "tracking number|track|shipm|parce", "bank name|bank", "interest rate|inter|rate", "nationality|natio|citiz",
        "marital status|marit|marri|singl", "mileage|milea|miles|km", "batch number|batch|lot ", "gate number|gate",
        "expiry date|exp|valid|best b|use by", "name of the doctor|docto|dr.|physi|m.d", "speed limit|speed|km|mph",
        "opening hours|open|hours", "ISBN|isbn", "edition|editi", "seat number|seat", "insurance company|insur",
        "parking fee|parki", "loyalty points|point|loyal", "discount|disco|rebat", "copyright year|copyr|(c)",
        "coupon code|coupo|vouch", "check-in date|check|arriv", "driver's name|drive", "exchange rate|excha|rate",
        "vehicle type|vehic|car|truck", "length of the contract|contr|lengt", "number of rooms|rooms",
        "name of the lawyer|lawye|attor", "hourly wage|wage|hour|salar", "table of contents|conte",
        "dosage|dosag|dose|mg", "allergies|aller", "ticket price|ticke", "wifi password|wifi|passw",
    ))
)  # fmt: skip


LABELLED = {"form", "fax", "memo", "invoice"}  # what has labels to ask for


def about_page(layout: DrawnPage, pen: Pen, text: str) -> list[DrawnQuestion]:
    """Questions of yes and no, in vain, and of how often, about a finished page whose text is given in lower case."""
    rng = pen.rng
    sorts = [asked.sort for asked in layout.questions]
    makers = [absent, in_vain if pen.strangers else absent, mentioned, topic]
    if pen.fields:
        makers += [said, labelled if pen.noun in LABELLED and rng.random() < 0.4 else said]
    elif "yesno" not in sorts:
        makers += [mentioned, mentioned]
    if "count" not in sorts:
        makers.append(often)
    return [asked for make in makers if (asked := make(layout, pen, text))]


def unheard(name: str, text: str) -> bool:
    """Whether no word of a name, nor any that stands for it, begins like one of the page."""
    pieces = [piece[:STEM] for piece in PIECE.findall(name.lower())]
    if not pieces or any(piece in text for piece in pieces):
        return False
    return not any(word in text for group in SAME if any(piece in group for piece in pieces) for word in group)


def shown(name: str, pen: Pen, text: str) -> str:
    """Whether a page gives a topic: Yes, No, or nothing where that is in doubt."""
    _, signs, labels = TOPICS[name]
    present = any(sign in text for sign in signs)
    if name in pen.asked or any(key.lower().startswith(labels) for key, _, _ in pen.fields):
        return YES if present else ""
    return "" if present or (name == "phone" and DIALLED.search(text)) else NO


def topic(layout: DrawnPage, pen: Pen, text: str) -> DrawnQuestion | None:
    """Whether there is a fax number and the like."""
    name = pen.rng.choice(tuple(TOPICS))
    answer = shown(name, pen, text)
    if not answer or (answer == NO and pen.rng.random() < 0.5):  # pages lack more than they have
        return None
    what = TOPICS[name][0]
    article = pen.rng.choice(("any", "an" if what[0] in "aeiou" else "a"))
    return DrawnQuestion(wording.phrase("has", pen.rng, pen.noun, text=f"{article} {what}"), [], "yesno", answer)


def absent(layout: DrawnPage, pen: Pen, text: str) -> DrawnQuestion | None:
    """What is asked of other documents, but is not on this page."""
    rng, way = pen.rng, pen.rng.random()
    if way < 0.25:
        name = rng.choice(tuple(TOPICS))
        if shown(name, pen, text) == NO:
            return _in_vain(wording.phrase(name, rng, pen.noun))
        return None
    if way < 0.65:
        label, signs = rng.choice(FOREIGN)
        if any(sign in text for sign in signs) or label.lower() in text:
            return None
    else:
        label = wording.bare(pen.texts("key"))
        if not unheard(label, text) or not SAFE.issuperset(kinds_for(label)):
            return None
    return _in_vain(wording.phrase("field", rng, pen.noun, key=label, low=label.lower()))


def in_vain(layout: DrawnPage, pen: Pen, text: str) -> DrawnQuestion | None:
    """A row, an item or a bar that is not there, asked for as those that are."""
    name, stranger, slots = pen.rng.choice(pen.strangers)
    return _in_vain(wording.phrase(name, pen.rng, pen.noun, **slots)) if unheard(stranger, text) else None


def _in_vain(asked: str) -> DrawnQuestion:
    return DrawnQuestion(asked, [], "absent", NOT_FOUND)


def mentioned(layout: DrawnPage, pen: Pen, text: str) -> DrawnQuestion | None:
    """Whether some words, of the page or drawn, stand on it."""
    rng, words = pen.rng, list[int]()
    if rng.random() < 0.5:
        first = rng.randrange(len(layout.words))
        last = first + 1
        while last < len(layout.words) and last - first < 3 and layout.word_lines[last] == layout.word_lines[first]:
            last += 1
        last = rng.randint(first + 1, last)
        last = next((at for at in range(first + 1, last) if not layout.words[at - 1][-1].isalnum()), last)
        words = list(range(first, last))
        name = " ".join(layout.words[first:last]).strip(".,:;()*#-")
        if len(name) < 4 or not name[0].isalnum():
            return None
    else:
        parts = pen.texts(rng.choice(("company", "name", "product", "title", "city", "rare", "word"))).split()
        name = " ".join(parts[: rng.randint(1, 3)]).strip(".,:;()")
        if len(name) < 4 or not unheard(name, text):
            return None
    answer = YES if words else NO
    return DrawnQuestion(wording.phrase("mentions", rng, pen.noun, text=name), words, "yesno", answer)


def said(layout: DrawnPage, pen: Pen, text: str) -> DrawnQuestion | None:
    """Whether a label has a value: its own, or another that would fit it."""
    rng = pen.rng
    key, value, words = rng.choice(pen.fields)
    alike = [other for other, _, _ in pen.fields if other.lower() == key.lower()]
    value = layout.text_of(words)
    truth = rng.random() < 0.5
    if not truth:
        value = " ".join(pen.texts.value_for(key).split())
        if value.lower() in text:
            return None
    if len(alike) > 1 or not 0 < len(value) <= LONG or not value.isascii():
        return None
    name = "is_value" if key.lower() in text else "is_named"
    asked = wording.phrase(name, rng, pen.noun, key=key, low=wording.spelled(key, rng), value=value)
    return DrawnQuestion(asked, words, "yesno", YES if truth else NO)


def labelled(layout: DrawnPage, pen: Pen, text: str) -> DrawnQuestion | None:
    """Whether there is a label."""
    rng = pen.rng
    key, truth = wording.bare(pen.texts("key")), False
    if rng.random() < 0.5:
        (key, _, _), truth = rng.choice(pen.fields), True
    if (not truth and not unheard(key, text)) or (truth and key.lower() not in text):
        return None
    asked = wording.phrase("has_field", rng, pen.noun, key=key, low=key.lower())
    return DrawnQuestion(asked, [], "yesno", YES if truth else NO)


def often(layout: DrawnPage, pen: Pen, text: str) -> DrawnQuestion | None:
    """How often a word stands on the page: of some words, the most frequent."""
    words = [word.strip(".,:;()'\"*").lower() for word in layout.words]
    picked = [words[int(pen.rng.random() * len(words))] for _ in range(8)]
    picked = [word for word in picked if len(word) > 2 and word.isalpha()]
    picked = [word for word in picked if text.count(word) == words.count(word) < 10]  # never a part of another word
    if not picked:
        return None
    best = max(picked, key=words.count)
    at = [index for index, word in enumerate(words) if word == best]
    asked = wording.phrase("times", pen.rng, pen.noun, text=best)
    return DrawnQuestion(asked, at, "count", str(len(at)))
