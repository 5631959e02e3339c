"""Data sheets of products: sections of properties with their values, and a short text."""

from __future__ import annotations

from homunculus.train.synth.documents.business_datasheet_asks import MAKER, PRODUCT, PROPERTIES
from homunculus.train.synth.documents.business_form_asks import read_asks
from homunculus.train.synth.documents.business_parts import FULL, FieldStyle, Sheet, footer, lines, put, say
from homunculus.train.synth.documents.business_terms import Term
from homunculus.train.synth.documents.page import NOTHING, Pen
from homunculus.train.synth.documents.parts import after_label

_ROWS = """# General
Model|Type|Model name|Version=code
Article number|Order code|Part number|Item no.=code
Colour|Finish|Housing colour=black/white/silver/anthracite/blue/red/RAL 7035
Warranty|Guarantee|Warranty period=1 year/2 years/24 months/36 months/5 years
Country of origin|Made in|Origin=country
EAN|Barcode|GTIN=ean
Certifications|Approvals|Conformity=CE/CE, RoHS/UL/TUV/FCC/CE, UKCA
Release date|Available from|On the market since=date
# Dimensions and weight
Width|Overall width|W=mm
Height|Overall height|H=mm
Depth|Length|Overall depth=mm
Net weight|Weight|Mass=kg
Shipping weight|Gross weight|Weight packed=kg
Packaging size|Carton dimensions|Package (L x W x H)=boxed
Pieces per carton|Packing unit|Units per box=count
# Electrical data
Operating voltage|Supply voltage|Rated voltage|Input voltage=volt
Rated power|Power|Nominal power|Power rating=watt
Power consumption|Power draw|Energy use=watt
Frequency|Mains frequency|Rated frequency=50 Hz/60 Hz/50 - 60 Hz
Rated current|Current|Max. current=ampere
Standby power|Consumption in standby|Standby=0.3 W/0.5 W/< 0.5 W/0.8 W/1 W
Protection class|IP rating|Degree of protection=IP20/IP44/IP54/IP65/IP67
Battery capacity|Capacity of battery|Battery=battery
Charging time|Time to full charge|Recharge time=hours
Cable length|Length of cable|Power cord=1.2 m/1.5 m/1.8 m/2 m/3 m
# Operating conditions
Operating temperature|Ambient temperature|Temperature range=celsius
Storage temperature|Temperature in storage=celsius
Relative humidity|Humidity|Air humidity=10 - 90 %/20 - 80 %/5 - 95 %/max. 85 %
Noise level|Sound pressure|Noise emission=noise
Altitude|Max. altitude|Operating altitude=2000 m/3000 m/5000 m
Service life|Expected lifetime|Life expectancy=10 years/15 years/20,000 h/50,000 h
Maintenance interval|Service interval=6 months/12 months/every 500 h/24 months
# Performance
Maximum speed|Top speed|Max. speed=speed
Flow rate|Delivery rate|Max. flow=flow
Maximum pressure|Working pressure|Pressure max.=6 bar/8 bar/10 bar/16 bar/145 psi
Accuracy|Measuring accuracy|Tolerance=+-0.1 %/+-0.5 %/1 %/0.02 mm/0.2 % of reading
Efficiency|Efficiency factor|Degree of efficiency=percent2
Capacity|Volume|Tank capacity=litre
Load capacity|Max. load|Payload=kg
Resolution|Display resolution|Image resolution=1280 x 800/1920 x 1080/2560 x 1440/3840 x 2160
Memory|RAM|Main memory=4 GB/8 GB/16 GB/32 GB
Storage|Hard disk|Internal storage=64 GB/128 GB/256 GB/512 GB/1 TB
# Interfaces
Display|Screen|Screen size=display
Connections|Ports|Interfaces=USB-C/2 x USB, LAN/RS-485/HDMI, USB/Ethernet, Wi-Fi
Wireless|Radio|Wireless standards=Wi-Fi 5/Wi-Fi 6/Bluetooth 5.0/Bluetooth 5.3/Zigbee/none
Protocol|Communication protocol|Bus system=Modbus/KNX/BACnet/CANopen/Profinet
Operating system|Software platform|OS=Linux/Android 13/Windows 11/proprietary
# Ordering
List price|Retail price|Recommended price=money
Delivery time|Lead time|Available within=5 days/1 week/2 weeks/3 - 4 weeks/10 working days
Minimum order|Min. order quantity|MOQ=count
Accessories included|Scope of delivery|Included=cable, manual/wall mount/carrying case/none/charger
Spare part no.|Replacement part|Filter part no.=code"""

SMALL_PRINT = ("Subject to change without notice.", "All data without warranty.", "Errors and omissions excepted.")


def _read(text: str) -> dict[str, list[Term]]:
    """Terms by section, with their questions."""
    found: dict[str, list[Term]] = {}
    asks = read_asks(PROPERTIES)
    for row in text.splitlines():
        if row.startswith("# "):
            terms = found.setdefault(row[2:], [])
            continue
        names, kind = row.split("=")
        labels = tuple(names.split("|"))
        terms.append(Term(kind, labels, asks[labels[0]]))
    return found


SPECS = _read(_ROWS)


def datasheet(pen: Pen) -> None:
    """The specification of a product: sections of names and values in one or two columns, and a short text."""
    rng, pen.noun = pen.rng, "data sheet"
    terms = {f"{title}-{at}": term for title, rows in SPECS.items() for at, term in enumerate(rows)}
    sheet = Sheet(pen, terms)
    opening(sheet)
    look, size, wide = FieldStyle.draw(pen), pen.style.size, pen.right - pen.left
    half = (wide - 2 * size) / 2
    double = wide > 44 * size and rng.random() < 0.6
    columns = [(pen.left, pen.left + half), (pen.right - half, pen.right)] if double else [(pen.left, pen.right)]
    between, share = rng.choice(("", "", "dots", "rules")), rng.uniform(0.42, 0.55)
    ends = [pen.y] * len(columns)
    for title in rng.sample(tuple(SPECS), rng.randint(3, len(SPECS))):
        at = ends.index(min(ends))
        pen.y = ends[at]
        x0, x1 = columns[at]
        section(sheet, title, x0, x1, look)
        spec_rows(sheet, title, x0, x0 + (x1 - x0) * share, x1, between)
        ends[at] = pen.y + 0.8 * size
    sheet.ask()
    footer(pen, rng.sample(SMALL_PRINT, 1))


def opening(sheet: Sheet) -> None:
    """The name of the product, its maker, and a short text."""
    pen, rng, style = sheet.pen, sheet.pen.rng, sheet.pen.style
    wide, size = pen.right - pen.left, style.size * rng.uniform(1.6, 2.4)
    name = f"{pen.texts('rare').capitalize()} {rng.choice('ABCMXZ')}{rng.randint(10, 990)}"
    say(pen, "title", PRODUCT, put(pen, name, pen.left, pen.y, size, style.head, limit=wide * 0.7))
    kind = rng.choice(("Data sheet", "Technical data", "Specifications", "Product data sheet"))
    put(pen, kind, pen.right, pen.y + 0.3 * size, align="right", limit=wide * 0.28)
    pen.y += size * 1.4
    if rng.random() < 0.6:
        label = rng.choice(("Manufacturer: ", "Made by ", "Brand: "))
        maker = lines(pen, [label + pen.texts("company")], pen.left, wide)
        say(pen, "company", MAKER, after_label(maker[0], label) if maker else NOTHING)
    if rng.random() < 0.7:
        pen.paragraph(" ".join(pen.texts("sentence") for _ in range(rng.randint(1, 3))))
    pen.skip(0.8)


def section(sheet: Sheet, title: str, x0: float, x1: float, look: FieldStyle) -> None:
    """The heading of a section, shaded or not."""
    pen, style = sheet.pen, sheet.pen.style
    if pen.y + 3 * style.size > pen.bottom:
        return
    if look.shade:
        pen.fill(x0, pen.y, x1, pen.y + 1.4 * style.size, look.shade, look.tint)
    head = title.upper() if sheet.upper else title
    put(pen, head, x0 + 0.3 * style.size, pen.y + 0.2 * style.size, font=style.bold, limit=x1 - x0)
    pen.y += 1.6 * style.size


def spec_rows(sheet: Sheet, title: str, x0: float, at: float, x1: float, between: str) -> None:
    """The properties of a section, one a line, with dots between name and value, rules between rows, or nothing."""
    pen, rng, style = sheet.pen, sheet.pen.rng, sheet.pen.style
    names = [name for name in sheet.terms if name.startswith(title + "-")]
    row = style.size * max(1.2, style.leading)
    for name in rng.sample(names, rng.randint(min(3, len(names)), len(names))):
        label, value = sheet.label(name), sheet.values(sheet.terms[name].kind)
        if not label or pen.y + row > pen.bottom or pen.glyphs > FULL:
            return
        mark = put(pen, label, x0, pen.y, limit=at - x0 - 0.5 * style.size)
        x, align = (x1, "right") if between == "dots" else (at, "left")
        written = put(pen, value, x, pen.y, font=style.value, align=align, limit=x1 - at) if mark else NOTHING
        sheet.keep(name, mark, written)
        if between == "dots" and mark and written:
            pen.dashes(mark.x1 + 3, pen.y + 0.72 * style.size, written.x0 - 3)
        elif between == "rules":
            pen.rule(x0, pen.y + row - 0.14 * style.size, x1, pen.y + row - 0.14 * style.size, 1, 0.3)
        pen.y += row
