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
        "What is the {0}?", "What is {0}?", "What is the value of the field '{0}'?", "What is the value for {0}?",
        "What is given as {0}?", "Which {0} is mentioned?", "What is the {0} mentioned in the document?",
        "What is the {0} given in the form?", "What does it say for {0}?", "What is written next to {0}?",
        "What is mentioned against {0}?", "What is filled in for '{0}'?", "{0}?", "Mention the {0}.",
        "What is the {0} mentioned in the letter?", "What is the {0} as per the document?",
        "{0} mentioned in the document",
        "What is entered in the field {0}?", "What does the document give as {0}?", "Find the {0}.",
        "What is the {0} specified on the page?", "What details are given under {0}?", "What is noted after '{0}'?",
        "Look up what is written for {0}.", "What has been put down for {0}?", "What is typed beside {0}?",
        "What information is provided for {0}?", "Which entry belongs to {0}?", "What stands right after {0}?",
        "What is stated for {0} in this document?", "I need the {0}.", "What's the {0}?",
    ),
    "row": (
        "What is the value for {0}?", "What is the value of {0}?", "How much is {0}?", "What is the figure for {0}?",
        "What number is given for {0}?", "{0}?", "What is the value corresponding to {0}?",
        "As per the table, what is the value of {0}?", "What is the number mentioned against {0}?",
        "What is the amount given for {0}?", "What figure stands next to {0}?", "What does {0} come to?",
        "Which number is on the line {0}?", "What is listed for {0}?", "What value is mentioned for {0}?",
        "According to the page, how much is {0}?", "What is reported for {0}?", "Look up the number for {0}.",
        "Find the value of {0}.", "value of {0}", "What is the quantity mentioned for {0}?",
        "What is the reading in the row {0}?", "What does the document show for {0}?", "I need the figure for {0}.",
        "What number is recorded against {0}?", "How high is {0}?",
    ),
    "cell": (
        "What is the {1} for {0}?", "What is the {1} of {0}?", "How much is the {1} for {0}?",
        "What is the value of {0} under {1}?", "What is the value of {0} in {1}?", "What is {0} in {1}?",
        "What is the {0} for {1}?", "What is the {1} in the row {0}?", "As per the table, what is the {1} for {0}?",
        "{0}, {1}?", "What is the {1} value for {0}?", "What is the {1} mentioned for {0}?",
        "What is given for {0} in the column {1}?", "As per the table, how much is {0} for {1}?",
        "According to the table, what is {0} under {1}?", "What figure is listed for {0} under {1}?",
        "In the column {1}, what is the value for {0}?", "For {0}, what is the {1}?", "Look up {0} under {1}.",
        "What number does the table give for {0}, {1}?", "What is the {1} against {0}?", "Find the {1} of {0}.",
        "What does the table show for {0} in {1}?", "{1} of {0}", "Which value is in the row {0} and the column {1}?",
        "What is the {1} corresponding to {0}?", "How much was {0} for {1}?", "What is reported for {0} under {1}?",
        "Give the {1} for {0}.", "Where {0} meets {1}, what number is there?",
    ),
    "date": (
        "What is the date?", "What is the date mentioned?", "What date is on the document?", "When is it dated?",
        "What is the date given in the document?", "Which date is mentioned on the page?", "date on the document",
        "What is the date mentioned in the letter?", "What is the date on this page?", "Which date does it bear?",
        "What day is named in the document?", "What is the date as per the document?", "What date can be seen?",
        "Find the date on the page.", "Mention the date.", "What date is written here?", "Which day is mentioned?",
        "What is the date specified in the document?", "What's the date on it?", "Look up the date.",
    ),
    "phone": (
        "What is the telephone number?", "What is the phone number mentioned?", "Which number can be called?",
        "What is the contact number?", "What is the Phone No.?", "What is the telephone number given in the letter?",
        "At which number can they be reached?", "What number should I dial?", "phone number on the page",
        "What is the Telephone No. mentioned in the document?", "How can they be contacted by phone?",
        "What number is given for calls?",
        "Which phone number is provided?", "Find the telephone number.", "What is the number to call?",
        "I want to ring them up: what is the number?", "What is the Ph. No. given?",
    ),
    "time": (
        "What time is mentioned?", "What is the time?", "At what time?", "What is the time given?", "At what hour?",
        "What is the time mentioned in the document?", "Which time of day is given?", "What time does it say?",
        "What hour is stated on the page?", "time on the page", "Find the time mentioned.", "What time is specified?",
        "What is the time as per the document?", "Which clock time is written here?",
    ),
    "email": (
        "What is the email address?", "What is the e-mail ID?", "Which mail address is given?", "email on the page",
        "What is the email id mentioned in the document?", "Where can an e-mail be sent?", "Find the e-mail address.",
        "How can they be reached by e-mail?", "To which address can one send mail electronically?",
        "What email address is provided for contact?", "Which electronic mail address is stated?",
        "What is the E-mail Address given?", "I want to email them: what is the address?", "What's the email?",
    ),
    "amount": (
        "What amount is mentioned?", "What is the amount?", "How much is it?", "What is the amount given?",
        "What sum of money is mentioned?", "How much money is it about?", "What is the dollar amount mentioned?",
        "Which amount of money is stated in the document?", "What sum is named?", "amount mentioned on the page",
        "What is the amount as per the document?", "How many dollars are mentioned?", "Find the amount of money.",
        "What is the amount specified in the letter?", "Which sum is written on the page?",
    ),
    "percent": (
        "What percentage is given?", "What is the percentage mentioned?", "How many percent?", "percentage on the page",
        "What is the percentage mentioned in the document?", "Which percentage is stated?", "What percent is it?",
        "How many percent does it say?", "What share in percent is mentioned?", "Find the percentage.",
        "What % is mentioned?", "Which figure in percent is on the page?", "What is the percentage value specified?",
    ),
    "person": (
        "Who is mentioned?", "What is the name of the person?", "Which person is named in the document?",
        "Who is named in the document?", "Who is the person mentioned in the document?", "person named on the page",
        "What is the name of the person mentioned in the letter?", "Whose name is given?", "Find the person's name.",
        "Which individual is named?", "Whose name is mentioned on the page?", "What person does the page name?",
        "Mention the name of the person.", "Who is referred to by name?", "Which Mr., Mrs., Ms. or Dr. is mentioned?",
    ),
    "zip": (
        "What is the state and zip code?", "Which state and zip code are in the address?", "state and zip",
        "What is the state with the zip code mentioned?", "Which state and ZIP are given?",
        "Find the state and zip code.",
        "What state and postal code does the address have?", "What is the state and ZIP code in the document?",
        "What do the state and the zip code read?", "With which state and zip code does the address end?",
        "What is the state abbreviation and zip?", "Which state and zip should I write on the envelope?",
    ),
    "total": (
        "What is the total?", "What is the total amount?", "How much is the total?", "What is the total value given?",
        "What is the amount of the total?", "What does it come to in total?", "What is the total mentioned?",
        "How much is it altogether?", "What is the sum total?", "total amount", "How much does it all add up to?",
        "What is the figure for the total?", "What is the total as per the document?", "Look up the total.",
        "What number is given as the total?", "All in all, how much is it?", "What is the overall amount?",
        "What is the total amount mentioned in the document?", "Find the total.", "I need the total.",
    ),
    "title": (
        "What is the title of the document?", "What is the heading of the page?", "What is the title?",
        "What is the main heading?", "What is the heading at the top of the page?", "What is the document about?",
        "What is the heading of the document?", "What is the document titled?", "title of the page",
        "What is the main title mentioned at the top?", "How is the page headed?", "What does the heading say?",
        "What is the title given at the top of the document?", "Under which title does the page stand?",
        "Mention the heading of the document.", "Which heading is given above the text?",
        "What is the topic at the top of the page?", "What is the page called?", "Find the title.",
    ),
    "page_number": (
        "What is the page number?", "What is the page number on this page?", "Which page is this?",
        "What is the page no. mentioned in the document?", "What is the page number given?", "page number",
        "On which page are we?", "What number does this page have?", "What is the number of the page?",
        "Which page number is printed?", "What page of the document is it?", "Find the page number.",
        "What is the Page No.?", "How is this page numbered?", "At which page is the document open?",
    ),
}  # fmt: skip
_CASES = (str, str, str, str.lower, str.lower, str.title, str.upper)
_PREFIXES = ("Please tell me: ", "According to the document, ", "Question: ", "Can you tell me, ", "From the page: ")
_ORDER = re.compile(r"(?:find|give|i|look up|mention)\b", re.I)  # what follows no prefix


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
    if draw < 0.22 and not _ORDER.match(question):
        return rng.choice(_PREFIXES) + question[:1].lower() + question[1:]
    return question
