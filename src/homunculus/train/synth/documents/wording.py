"""How questions are put: a template is filled, a label gets its synonyms, and everyday sloppiness comes on top."""

from __future__ import annotations

import random
import re
from functools import lru_cache

from homunculus.train.synth.documents import business_line_asks, business_table_asks, templates, worked

TEMPLATES = templates.TEMPLATES | worked.TEMPLATES | {
    "entry": business_line_asks.ENTRY, "charge": business_line_asks.LINE, "line_amount": business_line_asks.AMOUNT,
    "line_count": business_line_asks.QUANTITY, "table_cell": business_table_asks.CELL,
}  # fmt: skip
LONGEST = 120  # characters of a question
EXACT = 0.35  # of the questions about a form are put in one and the same way

_PLURAL = {"no": "number", "nos": "numbers", "num": "number", "#": "number", "qty": "quantity", "amt": "amount"}
EXPAND = _PLURAL | {
    "tel": "telephone", "ph": "phone", "dept": "department", "inv": "invoice", "acct": "account", "a/c": "account",
    "ref": "reference", "po": "purchase order", "p.o": "purchase order", "dob": "date of birth", "mfr": "manufacturer",
    "desc": "description", "addr": "address", "attn": "attention", "reg": "registration", "est": "estimated",
    "mgr": "manager", "org": "organization", "bal": "balance", "exp": "expiry", "cust": "customer", "wt": "weight",
}  # fmt: skip

# What a label (lower case, no punctuation) asks, besides its own words.
SYNONYMS: tuple[tuple[str, str], ...] = (
    (
        r"date|dated|date of (letter|memo|issue)",
        "[When was this [written|sent]|What is the date {m} in [this|the] {doc}|date|When was the {doc} dated]",
    ),
    (
        r"to|memo to|sold to|bill to|ship to|send to",
        "[Who is it addressed to|To whom is [this|the] {doc} addressed|Who is the recipient|Who is the {doc} to]",
    ),
    (
        r"from|memo from",
        "[Who sent this {doc}|Who is the {doc} from|Who is the sender|From whom is the {doc}|Who wrote this]",
    ),
    (
        r"(subject|re|subj|regarding)",
        "[What is the subject of [the|this] {doc}|What is this {doc} about|What is the {doc} regarding|"
        "What is the subject {m}]",
    ),
    (
        r"(attn|attention)",
        "[Who is this for the attention of|Whose attention is it for|Who should pay attention to it]",
    ),
    (
        r"(cc|copies|copy to|copies to)",
        "[Who is copied|Who gets a copy|Who is mentioned in cc|To whom are copies sent]",
    ),
    (
        r"(tel|telephone|phone|phone no|tel no|telephone no|phone number)",
        "[What is the phone number|What is the telephone number {m}|What is the contact number|"
        "Which number can be called]",
    ),
    (
        r"(fax|fax no|fax number|telefax|telecopier no)",
        "[What is the fax number|What is the fax no {m}|Where can a fax be sent]",
    ),
    (
        r"(e-?mail|email address|e-?mail id)",
        "[What is the email address|What is the email id {m}|How can one write by email]",
    ),
    (r"(web|website|url|homepage)", "[What is the website|Which web address is {m}]"),
    (
        r"(inv|invoice|bill) ?(no|number|num|#)?",
        "[What is the invoice number|What is the number of the invoice|What is the bill number]",
    ),
    (
        r"(po|purchase order|p o|order) ?(no|number|#)?",
        "[What is the purchase order number|What is the order number {m}|What is the PO number]",
    ),
    (r"(acct|account|a/c) ?(no|number|#)?", "[What is the account number|Which account is {m}]"),
    (
        r"(total|total due|amount due|balance due|grand total|net total|net amount|total amount|total payable)",
        "[What is the amount payable|How much is the {low}|How much has to be paid|What is the total|How much is due]",
    ),
    (r"(sub ?total)", "[What is the sum before tax|What is the sub total|How much is the subtotal]"),
    (r"(tax|vat|gst|sales tax).*", "[How much is the tax|What is the tax amount|How much {low} is charged]"),
    (
        r"(cash|paid|amount paid|tendered|cash tendered)",
        "[How much cash was given|How much was paid|What is the cash amount]",
    ),
    (r"(change|change due)", "[How much change was given|What is the change|How much was returned]"),
    (
        r"(cashier|served by|clerk|operator)",
        "[Who is the cashier|Who served the customer|What is the name of the cashier]",
    ),
    (r"(due date|payment due|due)", "[When is the payment due|By when must it be paid|What is the due date]"),
    (r"(terms|payment terms)", "[What are the terms|What are the payment terms|How is it to be paid]"),
    (
        r"(address|mailing address|street address|street)",
        "[What is the address|Where does [he|she|the person] live|What is the street address]",
    ),
    (r"(city|town)", "[Which city is {m}|What is the name of the city]"),
    (r"(state|province)", "[Which state is {m}|What is the name of the state]"),
    (r"(zip|zip code|postal code|postcode)", "[What is the zip code|What is the postal code]"),
    (
        r"(name|full name|name of applicant|applicant|employee name|patient name)",
        "[What is the name|What is the name of the person|Whose name is {m}|Who is [it|the {doc}] about]",
    ),
    (
        r"(title|position|job title|designation|occupation)",
        "[What is the designation|What is the position {m}|What is the job title|What is the occupation]",
    ),
    (
        r"(company|company name|firm|organi[sz]ation|employer)",
        "[What is the name of the company|Which company is {m}|What company is it]",
    ),
    (r"(dept|department|division)", "[Which department is {m}|What is the name of the department]"),
    (
        r"(pages|no of pages|number of pages|total pages).*",
        "[How many pages are there|How many pages are sent|What is the number of pages]",
    ),
    (r"(project|project name|project title)", "[What is the name of the project|Which project is it]"),
    (
        r"(approved by|approved|authorized by|issued by|prepared by|requested by|submitted by|reviewed by)",
        "[Who is it {low}|{key} whom|By whom is it {verb}|Who {verb} it]",
    ),
    (r"(qty|quantity|amount ordered)", "[How many were ordered|What is the quantity]"),
    (r"(age)", "[How old is the person|What age is {m}]"),
    (r"(sex|gender)", "[What is the gender|Is it a man or a woman]"),
    (
        r"(dob|date of birth|birth date|birthdate|born)",
        "[When was the person born|What is the birth date|What is the date of birth]",
    ),
    (r"(time)", "[At what time|What time is {m}|What is the time]"),
    (r"(location|place|venue)", "[Where is it|Where will it take place|What is the location]"),
    (r"(price|unit price|cost|amount|fee|rate)", "[How much is it|How much does it cost|What is the {low}]"),
    (r"(customer|client|buyer|sold to)", "[Who is the customer|What is the name of the customer|Who bought it]"),
    (r"(vendor|supplier|seller)", "[Who is the vendor|What is the name of the supplier|Who sells it]"),
    (r"(brand|product|product name)", "[What is the name of the product|Which brand is {m}|What product is it]"),
    (r"(weight|net weight|net wt)", "[How heavy is it|How much does it weigh|What is the weight]"),
    (
        r"(exp|exp date|expiry|expiry date|best before|use by)",
        "[When does it expire|What is the expiry date|Until when is it good]",
    ),
    (r"(signature|signed)", "[Who signed|Whose signature is it]"),
    (r"(ref|reference|our ref|your ref) ?(no|number)?", "[What is the reference number|What is the reference]"),
)
_PATTERNS = tuple((re.compile(pattern), template) for pattern, template in SYNONYMS)
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_ASKING = re.compile(
    r"(what|who|when|where|which|how|to whom|from whom|by whom|is|are|was|does|did|do|has|can)\b", re.IGNORECASE
)


@lru_cache(4096)
def ways(template: str) -> tuple[str, ...]:
    """The template with one alternative taken for each bracket, in all ways that there are."""
    found = _CHOICE.search(template)
    if not found:
        return (template,)
    before, after = template[: found.start()], template[found.end() :]
    return tuple(way for part in found[1].split("|") for way in ways(f"{before}{part}{after}"))


def phrase(name: str, rng: random.Random, noun: str = "document", /, **slots: str) -> str:
    """One question of a sort, put in one of many ways."""
    templates = TEMPLATES[name]
    return fill(templates[int(rng.random() * len(templates))], rng, noun, **slots)


def fill(template: str, rng: random.Random, noun: str, /, **slots: str) -> str:
    """A template with its alternatives taken and its slots filled."""
    options = ways(template)
    asked = sloppy(options[int(rng.random() * len(options))], rng)  # before the slots, whose text must stay as it is
    low = asked.lower()
    if "{doc}" in low:
        slots["doc"] = noun if rng.random() < 0.7 else rng.choice(("document", "page"))
    if "{m}" in low:
        slots["m"] = rng.choice(("mentioned", "given", "written", "specified"))
    if asked.isupper():
        slots |= {slot.upper(): text.upper() for slot, text in slots.items()}
    return asked.format_map(slots)


def sloppy(question: str, rng: random.Random) -> str:
    """The question as people type it: lower case, no question mark, a blank before it, all capitals."""
    if rng.random() < 0.55 or not _ASKING.match(question):
        return question
    habit = rng.random()
    if habit < 0.3:
        return question[0].lower() + question[1:]
    if habit < 0.5:
        return question.removesuffix("?")
    if habit < 0.7:
        return question.removesuffix("?") + " ?"
    if habit < 0.8:
        return question.lower()
    if habit < 0.84:
        return question.upper()
    if habit < 0.92:
        return question.replace(" the ", "  the ", 1)
    return question.replace(" the ", " ", 1)


def bare(key: str) -> str:
    """A label without its punctuation."""
    return " ".join(key.strip(" :.*-_").split())


def spelled(key: str, rng: random.Random) -> str:
    """A label as a question names it: in lower case, sometimes with its abbreviations spelled out."""
    low = bare(key).lower() if rng.random() < 0.85 else bare(key)
    if rng.random() < 0.6:
        low = " ".join(EXPAND.get(word.strip(".:").lower(), word) for word in low.split())
    return low


@lru_cache(65536)
def known(key: str) -> str:
    """The template of what a label is known to ask, if anything."""
    name = re.sub(r"[^a-z/ -]", "", bare(key).lower()).strip()
    return next((template for pattern, template in _PATTERNS if pattern.fullmatch(name)), "")


def key_phrases(key: str, rng: random.Random, noun: str, times: int = 1) -> list[str]:
    """Questions for what stands at a label, by the label's own words or by what it is known to ask."""
    plain, template = bare(key), known(key)
    asked = []
    for _ in range(times):
        if noun == "form" and rng.random() < EXACT:
            asked.append(f"What is the value of the field '{plain}'?")
            continue
        low = spelled(key, rng)
        if template and rng.random() < 0.45:
            verb = plain.lower().removesuffix(" by")
            asked.append(fill(template + "?", rng, noun, key=plain, low=low, verb=verb))
        else:
            asked.append(phrase("field", rng, noun, key=plain, low=low))
    return asked
