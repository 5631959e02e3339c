"""Three of the test documents: a bank statement, a payslip and an insurance form."""

from __future__ import annotations

from draw_documents import WIDTH, Page

LEFT, RIGHT = 100, WIDTH - 100

ACCOUNT = """
Account|Everyday Saver|kind
Account number|40718826|account
Sort code|23-81-06|sort
Sheet|17 of 17|sheet
Interest rate|1.35% gross p.a.|rate
Printed|1 July 2025|printed
"""
BALANCES = """
Balance on 1 June|£2,314.08|start
Money in|£3,162.44|in
Money out|£2,987.61|out
Balance on 30 June|£2,488.91|end
"""
ENTRIES = """
01 Jun||Brought forward|||2,314.08
02 Jun|SO|Rent Pennine Lettings|785.00||1,529.08
02 Jun|CP|Greenhead Grocers|46.19||1,482.89
03 Jun|DD|Yorkshire Water|31.50||1,451.39
04 Jun|CP|Northern Trains|18.60||1,432.79
05 Jun|TR|From D Okonkwo||150.00|1,582.79
06 Jun|CW|Cash machine Market St|80.00||1,502.79
09 Jun|DD|Pulse Broadband|27.99||1,474.80
10 Jun|CP|Tansy Garden Centre|63.45||1,411.35
11 Jun|CP|Bramley Opticians|129.00||1,282.35
12 Jun|BP|Vale Vets|54.20||1,228.15
13 Jun|CP|Greenhead Grocers|52.87||1,175.28
16 Jun|DD|Calderdale council tax|142.00||1,033.28
16 Jun|DD|Solace Home Insurance|21.36||1,011.92
17 Jun|CP|Refund Tansy Garden Centre||24.95|1,036.87
18 Jun|CP|Station Cafe|9.40||1,027.47
19 Jun|DD|Orbit Mobile|14.00||1,013.47
20 Jun|SO|Savings pot transfer|250.00||763.47
23 Jun|CP|Hollins Bakery|12.75||750.72
24 Jun|CP|Cragg Cycles|318.40||432.32
25 Jun|DD|Ember Gas & Electric|96.00||336.32
26 Jun|CP|Greenhead Grocers|58.02||278.30
27 Jun|TR|Fenwick Textiles wages||2,987.49|3,265.79
27 Jun|SO|Nursery fees June|640.00||2,625.79
28 Jun|CP|Picture House tickets|27.50||2,598.29
29 Jun|CP|Moorside Fuel|49.38||2,548.91
30 Jun|CW|Cash machine Crown St|60.00||2,488.91
"""
STATEMENT_QUESTIONS = """
How much money was on the account when June began?|start|2,314.08
What did she have in the account on the last day of June?|end|2,488.91
What did Harriet spend at Bramley Opticians?|Bramley Opticians 3
how large was the wage she got from Fenwick Textiles|Fenwick Textiles wages 4
What was left on the account after the rent had gone out?|Rent Pennine Lettings 5
Whose account is this?|holder
sort code of the account|sort
What did she pay for council tax?|Calderdale council tax 3
"""


def bank_statement() -> Page:
    """A bank statement with a dense list of entries."""
    page = Page("bank_statement", 9)
    page.fill(0, 0, WIDTH, 118, 70)
    page.text(LEFT, 74, "Calder Valley Building Society", "sb", 17, ink=255)
    page.text(RIGHT, 72, "Statement of account", points=10.5, align="r", ink=255)
    page.text(LEFT, 200, "Ms Harriet Okonkwo", key="holder")
    page.lines(LEFT, 227, ("23 Thornfield Rise", "Hebden Bridge", "HX7 6DR"))
    page.pairs(720, 200, (0, 28), (190, 0), ACCOUNT, {"ink": 80}, {"face": "b"})
    page.fill(LEFT, 396, RIGHT, 486, 236)
    page.pairs(LEFT + 20, 428, (260, 0), (0, 38), BALANCES, {"points": 8, "ink": 80}, {"face": "b", "points": 11.5})
    stops = "106l 210l 280l 800r 960r 1134r"
    page.row(544, stops, "Date|Type|Details|Paid out|Paid in|Balance", "b", points=8.5)
    page.rule(LEFT, 558, RIGHT, 558, 2, 60)
    y = 588
    for row in ENTRIES.strip().splitlines():
        cells = row.split("|")
        page.row(y, stops, "|".join(cells[:2] + [""] * 4))
        page.row(y, "280l 0l 0l 800r 960r 1134r", "|".join([cells[2], "", "", *cells[3:]]), named=True)
        page.rule(LEFT, y + 10, RIGHT, y + 10, 1, 215)
        y += 32
    small = {"points": 7.5, "ink": 75}
    page.text(LEFT + 6, y + 16, "DD direct debit   SO standing order   CP card payment   BP bill payment   TR transfer"
              "   CW cash withdrawal", **small)  # fmt: skip
    page.rule(LEFT, 1640, RIGHT, 1640, 1, 140)
    page.lines(LEFT, 1670, ("Deposits up to £85,000 are protected by the national compensation scheme.",
                            "Lost card? Call 0800 555 0142, day or night."), 24, **small)  # fmt: skip
    page.ask(STATEMENT_QUESTIONS)
    return page


STAFF = (
    "Name|Tobias Anand Moreau|name\nJob|Marine electrician|job\nTax card|7301 / table 9|card",
    "Staff no.|H-3307|staff\nSection|Hull outfitting|section\nEmployed from|15.08.2019|since",
    "Paid on|28.02.2025|payday\nFor the month|February 2025|month\nWeekly hours|37.5|hours",
)
EARNINGS = """
Regular time|150.00|24.80|3 720.00
Overtime 50 %|11.50|37.20|427.80
Overtime 100 %|4.00|49.60|198.40
Night supplement|18.00|4.15|74.70
Tool allowance|||60.00
Travel to Egersund|||112.50
"""
DEDUCTIONS = """
Income tax|4 480.90|1 254.65
National insurance|4 593.40|358.29
Pension scheme|3 720.00|74.40
Union fee||41.00
Canteen||86.25
Advance of 10.02.||300.00
"""
YEAR = """
Taxable pay|4 212.35|4 480.90|8 693.25
Tax withheld|1 153.10|1 254.65|2 407.75
Holiday pay set aside|429.66|457.05|886.71
Pension by employer|186.00|186.00|372.00
"""
LEAVE = """
Days carried over|3|carried
Days for this year|25|leave
Days taken|4|used
Days left|24|days left
"""
PAYSLIP_QUESTIONS = """
How much money ends up in Tobias's bank account?|net|2478.81
What is taken off for the union?|Union fee 2
How many hours of double-paid overtime did he do?|Overtime 100 % 1
what was he paid for the trip to Egersund|Travel to Egersund 3
Before anything is taken off, what did he earn?|gross|4593.40
How much income tax has been withheld so far this year?|Tax withheld 3|2407.75
How many days off can he still take?|days left
Since when has he been with the firm?|since
"""


def payslip() -> Page:
    """A payslip with earnings and deductions side by side."""
    page = Page("payslip", 9)
    page.text(LEFT, 112, "Halvorsen & Reyes Shipyard", "sb", 15)
    page.text(LEFT, 142, "Wharf 9, 4012 Stavanger Bay", "s", 8.5, ink=70)
    page.text(RIGHT, 112, "PAY ADVICE", "sb", 15, "r")
    page.text(RIGHT, 142, "Private and confidential", "s", 8.5, "r", 70)
    page.rule(LEFT, 166, RIGHT, 166, 3, 40)
    for x, column in zip((LEFT, 480, 840), STAFF, strict=True):
        page.pairs(x, 212, (0, 78), (0, 30), column, {"face": "s", "points": 8, "ink": 90}, {})
    page.fill(LEFT, 446, 600, 486, 215)
    page.fill(640, 446, RIGHT, 486, 215)
    earned, taken = "110l 400r 490r 590r", "650l 1010r 1130r"
    page.row(474, earned, "Earnings|Hours|Rate|Amount", "b", points=8.5)
    page.row(474, taken, "Deductions|Basis|Amount", "b", points=8.5)
    page.table(522, earned, EARNINGS, 34)
    page.table(522, taken, DEDUCTIONS, 34)
    page.rule(LEFT, 744, 600, 744, 1, 60)
    page.rule(640, 744, RIGHT, 744, 1, 60)
    page.pairs(LEFT + 10, 776, (0, 0), (480, 0), "Sum of earnings|4 593.40|gross", {"face": "b"},
               {"face": "b", "align": "r"})  # fmt: skip
    page.pairs(650, 776, (0, 0), (480, 0), "Sum of deductions|2 114.59|taken", {"face": "b"},
               {"face": "b", "align": "r"})  # fmt: skip
    page.frame(640, 812, RIGHT, 880, 3, 40)
    page.text(660, 856, "To your account", "b", 10.5)
    page.text(RIGHT - 20, 856, "2 478.81", "b", 12, "r", key="net")
    page.lines(LEFT + 10, 842, ("Sandnes Sparebank", "Account 3201.55.40917"), 28)
    year_and_leave(page)
    page.text(
        LEFT, 1660, "Questions about your pay: payroll desk, extension 218, before the 10th of the month.", "s", 8
    )
    page.ask(PAYSLIP_QUESTIONS)
    return page


def year_and_leave(page: Page) -> None:
    """The sums of the year, and the days off."""
    page.text(LEFT, 968, "Balances since 1 January", "b", 10)
    stops = "110l 560r 780r 1130r"
    page.row(1008, stops, "|January|February|This year", "b", points=8.5)
    page.rule(LEFT, 1020, RIGHT, 1020)
    y = page.table(1052, stops, YEAR, 34)
    page.text(LEFT, y + 60, "Leave", "b", 10)
    page.pairs(LEFT + 10, y + 98, (260, 0), (0, 32), LEAVE, {"points": 8.5, "ink": 90}, {"face": "b"})


HOLDER = """
420|Surname|Brändli|surname; 420|First name|Noémie Claire|first; 200|Title|Ms|
620|Street, no.|Chemin des Vignes 12b|street; 150|Postcode|1095|post; 270|Town|Lutry|town
300|Born on|09.11.1983|born; 340|Telephone (daytime)|+41 21 555 04 68|phone; 400|E-mail|n.braendli@postfach.example|mail
420|Policy no.|HC 2.204.871|policy; 310|Sum insured CHF|85'000|sum; 310|Own share CHF|500|own
"""
EVENT = (
    "300|Day of the event|22.01.2025|event; 200|Time|approx. 06:40|time; 540|Place|Kitchen and cellar of the home|place"
)
STORY = (
    "The supply hose of the dishwasher burst during the night. Water ran over the floor",
    "of the kitchen and down into the cellar, where boxes and a carpet were soaked.",
    "The caretaker shut the main tap at seven o'clock.",
)
REPAIR = (
    "520|Repairs by|Sanitaire Rochat Sàrl, Pully|repair; 260|Estimate CHF|1'940.00|estimate; 260|Dated|24.01.2025|dated"
)
DAMAGED = """
Wool carpet 200 x 300 cm|06.2021|1'250.00|875.00
Dishwasher Silenta 60|03.2018|1'490.00|450.00
Books and boxes in cellar|various|600.00|380.00
Electric drill|11.2022|189.00|150.00
"""
PAYMENT = "620|IBAN|CH36 0900 0000 1520 7736 4|iban; 420|Account in the name of|N. C. Brändli|holder"
FORM_QUESTIONS = """
What was the reason for the damage that is ticked?|Cause Water
On what date did the hose burst?|event
How much does she want for the carpet?|Wool carpet 200 x 300 cm 3|875
When was the dishwasher bought?|Dishwasher Silenta 60 1
For what amount are the contents insured?|sum|85000|CHF 85'000
Who is going to fix the damage?|repair
policy number?|policy
In which town does Noémie live?|town
"""


def insurance_form() -> Page:
    """A claim form of boxed values with labels inside the boxes."""
    page = Page("insurance_form", 9.5)
    page.fill(LEFT, 80, LEFT + 8, 150, 40)
    page.text(LEFT + 26, 112, "Vaudoise Lacustre Assurances", "b", 13)
    page.text(LEFT + 26, 144, "Household contents – report of damage", points=10.5)
    page.lines(RIGHT, 112, ("Form 6120 e", "05.2024"), 28, points=8, align="r", ink=80)
    y = page.boxes(LEFT, heading(page, 186, "1", "Policyholder"), 64, HOLDER)
    y = page.boxes(LEFT, heading(page, y + 26, "2", "What happened"), 64, EVENT)
    y = ticks(page, y, "Cause", ("Fire", "Water", "Theft", "Storm", "Glass breakage"), 1)
    page.frame(LEFT, y, RIGHT, y + 150)
    page.text(LEFT + 8, y + 19, "Short description", points=6.5, ink=70)
    page.lines(LEFT + 8, y + 52, STORY, 34)
    y = ticks(page, y + 150, "Reported to the police", ("Yes", "No"), 1)
    y = page.boxes(LEFT, y, 64, REPAIR)
    y = heading(page, y + 26, "3", "Damaged items")
    stops = "110l 660l 900r 1130r"
    page.row(y + 28, stops, "Item|Bought|Price CHF|Claimed CHF", "b", points=8.5)
    page.rule(LEFT, y + 40, RIGHT, y + 40)
    y = page.table(y + 72, stops, DAMAGED, 38, (LEFT, RIGHT))
    page.row(y + 4, stops, "Total|||1'855.00", "b")
    y = page.boxes(LEFT, heading(page, y + 34, "4", "Payment"), 64, PAYMENT)
    page.text(LEFT, y + 96, "Lutry, 27.01.2025")
    for x0, x1, label in ((LEFT, LEFT + 380, "Place, date"), (640, RIGHT, "Signature")):
        page.rule(x0, y + 106, x1, y + 106)
        page.text(x0, y + 130, label, points=7, ink=80)
    signature = ((680, 92), (706, 54), (716, 98), (742, 66), (756, 94), (788, 70), (806, 90), (870, 80))
    page.draw.line([(x, y + down) for x, down in signature], fill=40, width=3)
    page.ask(FORM_QUESTIONS)
    return page


def heading(page: Page, y: float, number: str, title: str) -> float:
    """The dark bar of a section; the top of what follows."""
    page.fill(LEFT, y, RIGHT, y + 38, 80)
    page.text(LEFT + 10, y + 27, number, "b", ink=255)
    page.text(LEFT + 44, y + 27, title, "b", ink=255)
    return y + 38


def ticks(page: Page, y: float, label: str, options: tuple[str, ...], picked: int) -> float:
    """A row of check boxes, one of them ticked."""
    page.frame(LEFT, y, RIGHT, y + 64)
    page.text(LEFT + 8, y + 19, label, points=6.5, ink=70)
    x = LEFT + 14.0
    for at, option in enumerate(options):
        page.frame(x, y + 32, x + 20, y + 52, 2, 40)
        if at == picked:
            page.draw.line(((x + 4, y + 42), (x + 9, y + 48), (x + 17, y + 34)), fill=20, width=4)
        x = page.text(x + 30, y + 50, option, key=f"{label} {option}") + 44
    return y + 64
