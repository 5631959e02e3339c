"""Values of business documents: amounts, dates, account numbers, all of a page written in one country's way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

from homunculus.train.synth.documents.page import Pen
from homunculus.train.synth.text import KINDS, MONTHS, SHORT

# Currency signs, how thousands are grouped, the decimal mark, and the ways to write a date.
COUNTRIES = (
    (("$", "$", "US$", "$ ", "USD ", " USD"), ",", ".", (0, 1, 2, 3, 4, 5)),
    (("$", "C$", "A$", "S$", "HK$", "CAD ", "AUD "), ",", ".", (2, 3, 5, 6, 7, 8)),
    (("GBP ", "GBP ", " GBP"), ",", ".", (6, 7, 8, 9, 5)),
    (("EUR ", " EUR", " EUR"), ".", ",", (10, 10, 11, 6, 9, 12)),
    (("EUR ", " EUR", "EUR "), " ", ",", (6, 9, 7, 10)),
    (("CHF ", "CHF ", "Fr. "), "'", ".", (10, 10, 9, 12)),
    (("CHF ", " CHF"), " ", ".", (10, 9, 5)),
    ((" kr", " SEK", " NOK", "DKK "), " ", ",", (5, 5, 10, 7)),
    ((" PLN", " CZK", "HUF "), " ", ",", (10, 5, 12)),
    (("RM", "RM ", "Rs. ", "INR ", "R ", "PHP "), ",", ".", (6, 7, 8, 13)),
    (("$", "EUR ", ""), "", ".", (5, 3, 7, 14)),
)
DATES: tuple[Callable[[date], str], ...] = (
    lambda d: f"{d.month}/{d.day}/{d.year}",
    lambda d: f"{d.month:02d}/{d.day:02d}/{d.year}",
    lambda d: f"{MONTHS[d.month - 1]} {d.day}, {d.year}",
    lambda d: f"{SHORT[d.month - 1]} {d.day}, {d.year}",
    lambda d: f"{d.month:02d}/{d.day:02d}/{d.year % 100:02d}",
    lambda d: f"{d.year}-{d.month:02d}-{d.day:02d}",
    lambda d: f"{d.day:02d}/{d.month:02d}/{d.year}",
    lambda d: f"{d.day} {MONTHS[d.month - 1]} {d.year}",
    lambda d: f"{d.day:02d} {SHORT[d.month - 1]} {d.year}",
    lambda d: f"{d.day:02d}-{d.month:02d}-{d.year}",
    lambda d: f"{d.day:02d}.{d.month:02d}.{d.year}",
    lambda d: f"{d.day}. {MONTHS[d.month - 1]} {d.year}",
    lambda d: f"{d.day}.{d.month}.{d.year}",
    lambda d: f"{d.day:02d}-{SHORT[d.month - 1]}-{d.year}",
    lambda d: f"{d.day:02d}-{SHORT[d.month - 1].upper()}-{d.year % 100:02d}",
)
SPOKEN: tuple[Callable[[date], str], ...] = (  # how a question names a day
    lambda d: f"{MONTHS[d.month - 1]} {d.day}",
    lambda d: f"{d.day} {MONTHS[d.month - 1]}",
    lambda d: f"{d.day:02d} {SHORT[d.month - 1]}",
    lambda d: f"{SHORT[d.month - 1]} {d.day}",
)
BRIEF: tuple[Callable[[date], str], ...] = (  # dates of a list, without the year
    lambda d: f"{d.day:02d} {SHORT[d.month - 1]}",
    lambda d: f"{SHORT[d.month - 1]} {d.day:02d}",
    lambda d: f"{d.month:02d}/{d.day:02d}",
    lambda d: f"{d.day:02d}.{d.month:02d}.",
)
LANDS = ("DE", "FR", "CH", "AT", "NL", "BE", "IT", "ES", "IE", "GB", "SE", "DK", "PL", "PT", "FI", "LU")
UNITS = ("pcs", "pc", "ea", "box", "set", "kg", "m", "h", "hrs", "unit", "pack", "day", "roll", "l", "pair")
ZONES = (
    "Main Street",
    "Dorfstrasse",
    "Rue du Lac",
    "Bahnhofstrasse",
    "High Street",
    "Via Roma",
    "Kerkstraat",
    "Storgatan",
)
Day = date


class Values:
    """Draws the values of one page, all written in the same way."""

    def __init__(self, pen: Pen) -> None:
        self.pen, self.rng = pen, pen.rng
        signs, self.group, self.point, dates = self.rng.choice(COUNTRIES)
        self.sign = self.rng.choice(signs)
        self.dated = DATES[self.rng.choice(dates)]
        self.brief = self.rng.choice(BRIEF)
        self.today = date(self.rng.randint(2012, 2026), self.rng.randint(1, 12), self.rng.randint(1, 28))
        self.grouped = self.rng.random() < 0.5  # long numbers are written in groups
        self.land = self.rng.choice(LANDS)
        self.prefix = self.rng.choice(("INV-", "RE", "", "", "F-", "20", "A", "SI-", "R-", "2024-", "#"))

    @property
    def english(self) -> bool:
        """Whether numbers have commas between thousands and a point before decimals."""
        return self.point == "." and self.group in (",", "")

    def number(self, value: float, decimals: int = 2) -> str:
        """A number without its currency."""
        text = f"{value:,.{decimals}f}"
        return text.replace(",", "_").replace(".", self.point).replace("_", self.group)

    def money(self, value: float, sign: bool = True) -> str:
        """An amount, with its currency if wanted."""
        text = self.number(abs(value))
        if sign and self.sign:
            text = text + self.sign if self.sign.startswith(" ") else self.sign + text
        return "-" + text if value < 0 else text

    def day(self, after: int = 0) -> Day:
        """The day so many days after that of the page."""
        return self.today + timedelta(after)

    def date(self, after: int = 0) -> str:
        """The date so many days after that of the page."""
        return self.dated(self.day(after))

    def spoken(self, day: Day) -> str:
        """A day as a question names it."""
        return self.rng.choice((*SPOKEN, self.dated))(day)

    def digits(self, count: int) -> str:
        """So many digits, the first of them not a nought."""
        return str(self.rng.randrange(10 ** (count - 1), 10**count))

    def groups(self, text: str, size: int = 4) -> str:
        """A long number as the page writes it: in groups or in one piece."""
        return " ".join(text[at : at + size] for at in range(0, len(text), size)) if self.grouped else text

    def address(self) -> list[str]:
        """Street and place in the country's order, on two or three lines."""
        rng, texts = self.rng, self.pen.texts
        number, city = rng.randint(1, 240), texts("city")
        if self.sign.strip() in ("$", "US$", "USD", "C$", "CAD"):
            return [f"{number} {texts('street')}", f"{city}, {texts('state')} {self.digits(5)}"]
        street = texts("street") if rng.random() < 0.5 else rng.choice(ZONES)
        first = f"{street} {number}" if rng.random() < 0.6 else f"{number} {street}"
        post = rng.choice((f"{self.digits(rng.choice((4, 5)))} {city}", f"{city} {self._postcode()}"))
        return [first, post, texts("country")] if rng.random() < 0.2 else [first, post]

    def _postcode(self) -> str:
        letters = "".join(self.rng.choice("ABCDEGHKLMNPRSTW") for _ in range(4))
        return f"{letters[:2]}{self.rng.randint(1, 20)} {self.rng.randint(1, 9)}{letters[2:]}"

    def __call__(self, kind: str) -> str:
        """A value of a kind: one of the texts, a made one of this file, or one of several given as `a/b/c`."""
        if "/" in kind:
            return self.rng.choice(kind.split("/"))
        made = getattr(self, f"_make_{kind}", None)
        return made() if made else self.pen.texts(kind) if kind in KINDS and kind != "date" else kind

    def _make_date(self) -> str:
        return self.date(self.rng.randint(-400, 60))

    def _make_birth(self) -> str:
        return self.dated(date(self.rng.randint(1938, 2004), self.rng.randint(1, 12), self.rng.randint(1, 28)))

    def _make_money(self) -> str:
        value = 10 ** self.rng.uniform(1.8, 4.9)
        return self.money(round(value, 2) if self.rng.random() < 0.6 else round(value / 50 + 1) * 50.0)

    def _make_rate(self) -> str:
        value = self.rng.choice((self.rng.randint(1, 30), round(self.rng.uniform(0.1, 25), 1), self.rng.uniform(0, 9)))
        text = f"{value:.2f}" if isinstance(value, float) and self.rng.random() < 0.5 else f"{value:.3g}"
        return text.replace(".", self.point) + self.rng.choice(("%", "%", " %"))

    def _make_number(self) -> str:
        return self.digits(self.rng.choice((5, 6, 6, 7, 8, 10)))

    def _make_code(self) -> str:
        pick = "".join(self.rng.choice("ABCDEFGHKLMNPRSTUVWX") for _ in range(self.rng.choice((1, 2, 2, 3))))
        tail = self.digits(self.rng.choice((3, 4, 5, 6, 8)))
        return self.rng.choice((f"{pick}-{tail}", f"{pick}{tail}", f"{tail}-{pick}", tail, f"{self.today.year}/{tail}"))

    def _make_invoice(self) -> str:
        return self.prefix + self.digits(self.rng.choice((4, 5, 6, 8)))

    def _make_iban(self) -> str:
        return self.groups(f"{self.land}{self.rng.randint(10, 98)}{self.digits(self.rng.choice((14, 16, 18)))}")

    def _make_bic(self) -> str:
        pick = "".join(self.rng.choice("ABCDEFGHIKLMNOPRSTUVWZ") for _ in range(6))
        return pick[:4] + self.land + pick[4:] + self.rng.choice(("", "", "XXX", "8BE"))

    def _make_account(self) -> str:
        text = self.digits(self.rng.choice((8, 9, 10, 12)))
        return self.rng.choice(
            (text, self.groups(text), f"{text[:3]}-{text[3:]}", f"XXXX{text[-4:]}", f"****{text[-4:]}")
        )

    def _make_card(self) -> str:
        last = self.digits(4)
        return self.rng.choice((f"XXXX XXXX XXXX {last}", f"**** **** **** {last}", self.groups(self.digits(16))))

    def _make_sort(self) -> str:
        text = self.digits(6)
        return self.rng.choice((f"{text[:2]}-{text[2:4]}-{text[4:]}", text, self.digits(9)))

    def _make_vat(self) -> str:
        return self.rng.choice((f"{self.land}{self.digits(9)}", f"{self.land} {self.digits(9)}",
            f"CHE-{self.digits(3)}."
                                f"{self.digits(3)}.{self.digits(3)} VAT",
                                f"{self.digits(2)}-{self.digits(7)}"))  # fmt: skip

    def _make_ssn(self) -> str:
        return self.rng.choice((f"{self.digits(3)}-{self.digits(2)}-{self.digits(4)}", f"756.{self.digits(4)}."
                                f"{self.digits(4)}.{self.digits(2)}", f"AB{self.digits(6)}C"))  # fmt: skip

    def _make_person(self) -> str:
        name = f"{self.pen.texts('first')} {self.pen.texts('last')}"
        return name if self.rng.random() < 0.85 else f"{self.rng.choice(('Mr', 'Ms', 'Mrs', 'Dr.'))} {name}"

    def _make_first(self) -> str:
        return self.pen.texts("first")

    def _make_postcode(self) -> str:
        return self.digits(5) if self.rng.random() < 0.6 else self._postcode()

    def _make_full_address(self) -> str:
        return ", ".join(self.address()[:2])

    def _make_street_line(self) -> str:
        return self.address()[0]

    def _make_period(self) -> str:
        start = self.rng.randint(-60, -28)
        return f"{self.date(start)} {self.rng.choice(('-', 'to', '-'))} {self.date(start + self.rng.randint(27, 31))}"

    def _make_month_year(self) -> str:
        return f"{MONTHS[self.today.month - 1]} {self.today.year}"

    def _make_count(self) -> str:
        return str(self.rng.choice((1, 2, 3, 4, self.rng.randint(1, 40), self.rng.randint(1, 400))))

    def _make_days(self) -> str:
        count = self.rng.choice((7, 10, 14, 15, 20, 30, 30, 45, 60, 90))
        return self.rng.choice(
            (f"Net {count}", f"{count} days net", f"{count} days", f"Within {count} days", f"Net {count} days")
        )

    def _make_weight(self) -> str:
        return self._range(0.5, 1800, self.rng.choice(("kg", "kg", "lb", "lbs")), self.rng.choice((0, 1, 2)))

    def _make_pressure(self) -> str:
        return f"{self.rng.randint(102, 164)}/{self.rng.randint(62, 98)}"

    def _make_reading(self) -> str:
        return self.digits(5)

    def _make_usage(self) -> str:
        return f"{self.number(self.rng.randint(40, 4000), 0)} {self.rng.choice(('kWh', 'kWh', 'm3', 'GB', 'units'))}"

    def _range(self, low: float, high: float, unit: str, decimals: int = 0) -> str:
        return f"{self.number(self.rng.uniform(low, high), decimals)} {unit}"

    def _make_ean(self) -> str:
        return self.digits(13)

    def _make_mm(self) -> str:
        return self._range(20, 2400, "mm") if self.rng.random() < 0.7 else self._range(2, 240, "cm", 1)

    def _make_kg(self) -> str:
        return self._range(0.2, 90, "kg", self.rng.choice((0, 1, 2)))

    def _make_boxed(self) -> str:
        return " x ".join(str(self.rng.randint(40, 900)) for _ in range(3)) + " mm"

    def _make_volt(self) -> str:
        return self.rng.choice(("230 V", "110 - 240 V", "24 V DC", "12 V DC", "400 V", "5 V", "48 V DC", "120 V AC"))

    def _make_watt(self) -> str:
        return self._range(2, 2800, "W") if self.rng.random() < 0.7 else self._range(0.5, 30, "kW", 1)

    def _make_ampere(self) -> str:
        return self._range(0.2, 32, "A", 1)

    def _make_battery(self) -> str:
        return self._range(800, 12000, "mAh") if self.rng.random() < 0.6 else self._range(2, 100, "Wh", 1)

    def _make_hours(self) -> str:
        return self._range(1, 14, self.rng.choice(("h", "hours")), self.rng.choice((0, 1)))

    def _make_celsius(self) -> str:
        return f"{self.rng.choice((-40, -20, -10, 0, 5))} to {self.rng.choice((35, 40, 45, 50, 60, 70))} C"

    def _make_noise(self) -> str:
        return self._range(18, 88, self.rng.choice(("dB", "dB(A)")))

    def _make_speed(self) -> str:
        return self._range(5, 6000, self.rng.choice(("rpm", "km/h", "m/s", "pages/min")))

    def _make_flow(self) -> str:
        return self._range(1, 900, self.rng.choice(("l/min", "m3/h", "l/h")))

    def _make_percent2(self) -> str:
        return self._range(40, 99, "%", 1)

    def _make_litre(self) -> str:
        return self._range(0.3, 400, self.rng.choice(("l", "litres", "ml")), 1)

    def _make_display(self) -> str:
        return (
            f"{self.rng.choice((2.4, 3.5, 5, 7, 10.1, 13.3, 15.6, 24, 27))} {self.rng.choice(('inch', 'in', 'inches'))}"
        )
