"""Draws examples/invoice.png, the page that `make demo` looks at: python examples/draw_invoice.py"""

from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT, LEFT, RIGHT = 1240, 1754, 110, 1130
INK, FAINT, BLUE = "#20242a", "#7a828c", "#1d5c8f"
ITEMS = [
    ("Oak plank, planed, 2.4 m", 12, 18.50),
    ("Brass hinge, 80 mm", 24, 3.15),
    ("Linseed oil, 5 l", 2, 41.90),
    ("Wood glue, waterproof", 4, 9.80),
    ("Countersunk screws, 4 x 40, box", 6, 7.25),
    ("Sandpaper, grain 120, roll", 3, 14.60),
    ("Drawer slide, pair, 450 mm", 8, 22.40),
    ("Delivery, two pallets", 1, 85.00),
]


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def main() -> None:
    page = Image.new("RGB", (WIDTH, HEIGHT), "#fdfdfb")
    draw = ImageDraw.Draw(page)
    draw.text((LEFT, 90), "Tannhof Joinery", BLUE, font(52))
    draw.text((LEFT, 160), "Mill Lane 7, 4020 Rosenau   office@tannhof.example   +43 732 555 014", FAINT, font(20))
    draw.line((LEFT, 205, RIGHT, 205), BLUE, 3)
    for row, line in enumerate(("Brightwater School", "Ms Ada Kern", "Harbour Street 21", "4040 Lindau")):
        draw.text((LEFT, 260 + 32 * row), line, INK, font(24))
    facts = ("Invoice", "2026-0417"), ("Date", "14 March 2026"), ("Customer", "K-2209"), ("Due", "13 April 2026")
    for row, (key, value) in enumerate(facts):
        draw.text((780, 260 + 32 * row), key, FAINT, font(24))
        draw.text((RIGHT, 260 + 32 * row), value, INK, font(24), anchor="ra")
    draw.text((LEFT, 470), "Materials for the workshop benches", INK, font(34))
    top = 560
    for x, name, anchor in (
        (LEFT, "Item", "la"),
        (760, "Quantity", "ra"),
        (940, "Price", "ra"),
        (RIGHT, "Amount", "ra"),
    ):
        draw.text((x, top), name, FAINT, font(22), anchor=anchor)
    draw.line((LEFT, top + 36, RIGHT, top + 36), FAINT, 2)
    for row, (name, count, price) in enumerate(ITEMS):
        y = top + 56 + 48 * row
        draw.text((LEFT, y), name, INK, font(24))
        for x, value in ((760, str(count)), (940, f"{price:.2f}"), (RIGHT, f"{count * price:,.2f}")):
            draw.text((x, y), value, INK, font(24), anchor="ra")
    net = sum(count * price for _, count, price in ITEMS)
    for row, (name, value, size) in enumerate(
        (("Net", net, 24), ("VAT 20 %", net * 0.2, 24), ("Total EUR", net * 1.2, 32))
    ):
        y = top + 90 + 48 * len(ITEMS) + 46 * row
        draw.text((760, y), name, FAINT if size == 24 else INK, font(size))
        draw.text((RIGHT, y), f"{value:,.2f}", INK, font(size), anchor="ra")
    draw.text((LEFT, 1330), "Please pay within 30 days, quoting the invoice number.", INK, font(22))
    draw.ellipse((860, 1330, 1080, 1480), outline="#b0433f", width=5)
    draw.text((970, 1405), "RECEIVED", "#b0433f", font(30), anchor="mm")
    draw.line((LEFT, 1620, RIGHT, 1620), FAINT, 1)
    draw.text((LEFT, 1636), "Bank of Rosenau   IBAN AT61 1904 3002 3457 3201   VAT ATU 5550 1417", FAINT, font(18))
    page.save(Path(__file__).with_name("invoice.png"), optimize=True)


if __name__ == "__main__":
    main()
