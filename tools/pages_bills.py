"""Three of the test documents: an invoice, a utility bill and a price list."""

from __future__ import annotations

from draw_documents import WIDTH, Page

LEFT, RIGHT = 110, WIDTH - 110

INVOICE_DATA = """
204|Invoice no.|LP-20418|number; 204|Invoice date|14 March 2025|date; 204|Payment due|13 April 2025|due; \
204|Customer no.|70233|customer; 204|Your order|KP/4471|order
204|Delivery note|DN-88120|note; 204|Shipped|11 March 2025|shipped; 204|Terms of delivery|DAP Hull|terms; \
204|Carrier|Norfreight|carrier; 204|Our contact|Maja Ekström|contact
"""
ITEMS = """
6204-2RS|Deep groove ball bearing, sealed|40|pcs|3.85|154.00
LM12UU|Linear bearing 12 mm|16|pcs|5.20|83.20
SH-1200-20|Hardened shaft Ø 20 mm, cut to 1200 mm|6|pcs|41.50|249.00
+both ends chamfered
HGW25CC|Carriage for profile rail size 25|8|pcs|58.90|471.20
HGR25-R|Profile rail size 25, 960 mm|4|pcs|72.40|289.60
+tolerance class H
GR-LGEP2|Bearing grease, cartridge 420 ml|5|pcs|13.75|68.75
SRV-CUT|Cutting and deburring|3.5|h|64.00|224.00
"""
SUMS = """
Net amount|1,539.75|net
Freight|46.00|freight
VAT 0 % (intra-community)|0.00|vat
Prepaid on 3 March|–500.00|prepaid
"""
INVOICE_QUESTIONS = """
Up to which day can we pay this without being late?|due
How much do we still have to transfer?|balance|1,085.75
What did the company already pay in advance?|prepaid|500.00
Give me the invoice number please|number
price for a single carriage for profile rail|HGW25CC 4
How many linear bearings were delivered?|LM12UU 2
Which forwarder brought the goods?|carrier
Where were the goods sent?|ship|18 Foundry Lane, Hull HU3 4TT
I want to make the bank transfer, what IBAN do I use?|iban
"""


def invoice() -> Page:
    """An invoice with its data in boxes, labels above values."""
    page = Page("invoice", 9)
    invoice_head(page)
    page.boxes(LEFT, 500, 62, INVOICE_DATA)
    page.fill(LEFT, 660, RIGHT, 702, 225)
    stops = "120l 260l 720r 800l 960r 1120r"
    page.row(688, stops, "Article|Description|Qty|Unit|Price|Amount EUR", "b", points=8.5)
    y = page.table(736, stops, ITEMS, 42, (LEFT, RIGHT)) + 14
    page.pairs(700, y, (0, 31), (420, 0), SUMS, {}, {"align": "r"})
    page.lines(LEFT, y + 30, ("Payable without deduction. Interest of 8 %", "per year is charged on late payments."),
               25, points=8, ink=60)  # fmt: skip
    page.fill(690, y + 112, RIGHT, y + 152, 225)
    page.text(700, y + 140, "Balance to settle", "b", 10)
    page.text(RIGHT - 10, y + 140, "EUR 1,085.75", "b", 10, "r", key="balance")
    page.rule(LEFT, 1610, RIGHT, 1610, 1, 140)
    small = {"points": 7.5, "ink": 60}
    page.lines(LEFT, 1642, ("Nordvik Handelsbank, Göteborg", "Company reg. 556708-1144"), 25, **small)
    end = page.text(520, 1642, "IBAN ", **small)
    page.text(end, 1642, "SE45 5000 0000 0583 9825 7466", key="iban", **small)
    page.text(520, 1667, "BIC NVHBSESS", **small)
    page.text(RIGHT, 1642, "Page 1 / 1", align="r", **small)
    page.ask(INVOICE_QUESTIONS)
    return page


def invoice_head(page: Page) -> None:
    """The seller, the buyer, and where the goods go."""
    page.fill(LEFT, 92, LEFT + 62, 154, 60)
    page.fill(LEFT + 20, 112, LEFT + 42, 134, 255)
    page.text(LEFT + 82, 124, "Lindqvist Precision AB", "b", 14)
    page.text(LEFT + 82, 152, "Bearings, shafts and linear guides", points=8.5, ink=80)
    page.text(RIGHT, 130, "INVOICE", "b", 20, "r", 60)
    page.lines(LEFT, 206, ("Hamngatan 41", "SE-503 32 Borås", "VAT SE556708114401"), 25, points=8, ink=70)
    reached = ("+46 33 480 17 90", "accounts@lindqvist-precision.example")
    page.lines(RIGHT, 206, reached, 25, points=8, align="r", ink=70)
    page.text(LEFT, 322, "Invoice address", "b", 8, ink=80)
    page.lines(LEFT, 352, ("Kestrel Packaging Ltd", "Attn. Accounts Payable", "Unit 7, Millbrook Way",
                           "Leeds LS11 9RD", "United Kingdom"))  # fmt: skip
    page.text(660, 322, "Goods sent to", "b", 8, ink=80)
    page.text(660, 352, "Kestrel Packaging Ltd – Plant 2")
    page.lines(660, 379, ("18 Foundry Lane", "Hull HU3 4TT"), key="ship")


BILL_DATA = """
Account|5518-2047-3|account
Bill date|Jul 30, 2025|billed
Service from|Jun 27 to Jul 28|period
Rate schedule|TOU-D Prime|rate
"""
READINGS = """
K1190437 off-peak|28,104|28,391|31|1|287
K1190437 on-peak|9,872|10,015|31|1|143
"""
CHARGES = """
Customer charge|31 days x $0.52|$16.12
Off-peak energy|287 kWh x $0.2410|$69.17
On-peak energy|143 kWh x $0.3985|$56.99
Wildfire fund charge|430 kWh x $0.0056|$2.41
City utility tax|5.0% of energy|$6.31
State surcharge||$4.27
Balance carried over from June||$0.00
Community solar credit||–$12.00
"""
MONTHS = "Aug 471 Sep 455 Oct 362 Nov 318 Dec 344 Jan 358 Feb 325 Mar 309 Apr 297 May 311 Jun 386 Jul 430"
BILL_QUESTIONS = """
What does Jorge have to pay in all?|due|143.27
On which day will the money be taken by AutoPay?|payday
How many kilowatt hours did he use off-peak?|K1190437 off-peak 5
what did the on-peak register show at the end of July|K1190437 on-peak 2
How big is the solar credit?|Community solar credit 2|12.00|$12.00
How much does the customer charge add to the bill?|Customer charge 2
Number to ring when the power is out?|outage
Which rate plan is he on?|rate
"""


def utility_bill() -> Page:
    """A bill for electricity with meter readings and a chart of use."""
    page = Page("utility_bill", 9.5)
    page.draw.ellipse((LEFT, 80, LEFT + 60, 140), fill=50)
    bolt = ((34, 88), (16, 116), (29, 116), (24, 134), (44, 104), (31, 104))
    page.draw.polygon([(LEFT + x, y) for x, y in bolt], fill=255)
    page.text(LEFT + 78, 122, "Tramuntana Electric Cooperative", "b", 15)
    page.lines(LEFT, 210, ("Jorge Villaseñor Pratt", "2850 Sycamore Canyon Road, Apt 14", "Ojai, CA 93023"), 30)
    page.fill(720, 176, RIGHT, 330, 232)
    page.text(744, 212, "Total amount due", points=9, ink=60)
    page.text(744, 262, "$143.27", "b", 20, key="due")
    page.text(744, 304, "AutoPay on", ink=60)
    page.text(RIGHT - 24, 304, "Aug 22, 2025", "b", align="r", key="payday")
    page.rule(LEFT, 372, RIGHT, 372, 2, 60)
    page.pairs(LEFT, 408, (258, 0), (0, 30), BILL_DATA, {"points": 8, "ink": 90}, {"face": "b"})
    page.text(LEFT, 514, "Your meter", "b", 12)
    stops = "110l 440r 640r 800r 980r 1130r"
    page.row(552, stops, "Meter|Jun 27|Jul 28|Days|Multiplier|Used kWh", points=8.5, ink=90)
    page.rule(LEFT, 564, RIGHT, 564)
    page.table(596, stops, READINGS, 34)
    page.text(LEFT, 716, "How we worked out your charges", "b", 12)
    y = page.table(762, "110l 560l 1130r", CHARGES, 39, (LEFT, RIGHT))
    page.row(y + 8, "110l 1130r", "Charges before the solar credit|$155.27", "b")
    chart(page, y + 90)
    page.rule(LEFT, 1630, RIGHT, 1630, 1, 140)
    small = {"points": 8, "ink": 60}
    end = page.text(LEFT, 1664, "Outage or downed line? Call ", **small)
    end = page.text(end, 1664, "(805) 555-0119", key="outage", **small)
    page.text(end, 1664, " at any hour.", **small)
    page.text(LEFT, 1690, "Billing questions: Mon to Fri, 8 am to 5 pm, (805) 555-0172", **small)
    page.ask(BILL_QUESTIONS)
    return page


def chart(page: Page, y: float) -> None:
    """Bars of the use of each month."""
    page.text(LEFT, y, "Electricity used, kWh per month", "b", 12)
    words, low = MONTHS.split(), y + 230
    for at, (month, used) in enumerate(zip(words[::2], words[1::2], strict=True)):
        x, top = LEFT + 20 + at * 84, low - int(used) * 0.36
        page.fill(x, top, x + 46, low, 60 if month == "Jul" else 170)
        page.text(x + 23, low + 26, month, points=8, align="m", ink=60)
        page.text(x + 23, top - 8, used, points=7.5, align="m", ink=60)
    page.rule(LEFT, low, RIGHT, low, 1, 90)


GROUPS = """
Spruce, planed
2101|Batten 24 x 48|2.40|0.41|1.38|1.24|1.12|312
2104|Batten 38 x 58|3.00|0.78|2.65|2.39|2.15|96
2110|Beam 60 x 120|4.00|3.10|9.80|8.85|7.95|140
2112|Beam 80 x 160|5.00|6.90|21.40|19.30|17.35|58
2117|Board 22 x 145|3.60|1.52|6.15|5.55|5.00|220
2119|Tongue and groove 19 x 121|4.20|1.22|7.05|6.35|5.70|405
Larch, rough sawn
3302|Board 27 x 143|4.00|2.14|13.90|12.55|11.25|87
3305|Cladding rhombus 27 x 68|4.00|1.05|8.45|7.60|6.85|260
3308|Post 90 x 90|3.00|3.42|18.75|16.90|15.20|41
3311|Sleeper 120 x 200|2.40|9.85|34.60|31.15|28.05|18
Oak, kiln dried
4401|Strip 20 x 40|2.00|0.61|5.95|5.35|4.80|150
4403|Board 27 x 150|2.50|3.05|24.80|22.30|20.10|64
4407|Worktop 38 x 640|2.00|9.90|148.00|133.20|119.90|12
4409|Threshold 25 x 110|1.00|1.98|15.30|13.75|12.40|33
4412|Stair tread 40 x 300|0.90|8.75|42.50|38.25|34.40|27
Panels
5503|Plywood birch 12 mm|2.50|8.20|61.20|55.10|49.60|74
5506|Plywood birch 18 mm|2.50|12.30|84.90|76.40|68.75|39
5511|OSB/3 15 mm|2.50|9.30|18.65|16.80|15.10|310
5514|OSB/3 22 mm|2.50|13.65|27.40|24.65|22.20|182
5520|MDF 16 mm|2.80|11.80|25.10|22.60|20.35|95
5527|Three-layer spruce 19 mm|5.00|8.60|71.30|64.15|57.75|21
Insulation
6602|Wood fibre board 60 mm|1.35|8.40|13.20|11.90|10.70|460
6604|Wood fibre board 100 mm|1.35|14.00|21.90|19.70|17.75|275
6609|Hemp batt 80 mm|1.20|2.90|11.45|10.30|9.25|130
6611|Cork sheet 20 mm|1.00|2.35|16.80|15.10|13.60|88
"""
LIST_QUESTIONS = """
What do I pay per piece if I order 20 beams 80 x 160?|2112 5
How many oak worktops are there in the warehouse?|4407 7
single price of the birch plywood with 18 mm|5506 4
How long is the larch sleeper in metres?|3311 2
Which article has the number 6609?|6609 1
What does one stair tread cost when I take sixty of them?|4412 6
From when do these prices hold?|start
What is charged for bringing a small order to me?|trip|48|EUR 48 per trip
"""


def price_table() -> Page:
    """A dense price list of a timber merchant."""
    page = Page("price_table", 9)
    page.text(LEFT, 108, "Timber and panels – trade price list", "b", 15)
    small = {"points": 7.8, "ink": 70}
    end = page.text(LEFT, 142, "Bergmann Holzhandel, Lindau. Valid from ", **small)
    end = page.text(end, 142, "1 September 2025", key="start", **small)
    page.text(end, 142, " until further notice. Prices in EUR per piece without VAT.", **small)
    stops = "118l 198l 565r 660r 770r 885r 1005r 1122r"
    page.fill(LEFT, 172, RIGHT, 238, 75)
    page.row(198, stops, "Item|Article|Length|Weight|1 to 9|10 to 49|50 and up|In stock", "b", points=8, ink=255)
    page.row(226, stops, "no.|(mm)|m|kg/m|pieces|pieces|pieces|pieces", points=8, ink=255)
    y, at = 256, 0
    for row in GROUPS.strip().splitlines():
        if "|" not in row:
            page.text(LEFT + 8, y + 16, row, "b")
            page.rule(LEFT, y + 27, RIGHT, y + 27)
            y, at = y + 55, 0
            continue
        if at % 2:
            page.fill(LEFT, y - 25, RIGHT, y + 11, 240)
        page.row(y, stops, row, named=True)
        y, at = y + 36, at + 1
    page.text(
        LEFT,
        y + 22,
        "Panels 1.25 m wide, three-layer boards 2.05 m. Weight of panels and insulation in kg per m².",
        **small,
    )
    end = page.text(
        LEFT, y + 49, "Orders above EUR 900 net are delivered free of charge within 60 km; below that, ", **small
    )
    end = page.text(end, y + 49, "EUR 48", key="trip", **small)
    page.text(end, y + 49, " per trip.", **small)
    page.text(LEFT, y + 76, "Goods cut to size cannot be returned.", **small)
    page.text(RIGHT, 1690, "Sheet 1 of 6", points=7.5, align="r", ink=80)
    page.ask(LIST_QUESTIONS)
    return page
