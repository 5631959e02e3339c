"""Fields of business documents: what a page may call each of them, and how people ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from homunculus.train.synth.documents import business_asks_accounts, business_asks_billing, business_asks_payroll


class Term(NamedTuple):
    """The kind of value of a field, its labels as printed, and questions that need no label."""

    kind: str
    labels: tuple[str, ...]
    asks: tuple[str, ...]


def term(kind: str, labels: str, *asks: str) -> Term:
    """A term from its labels, separated by bars."""
    return Term(kind, tuple(labels.split("|")), asks)


def widened(terms: Mapping[str, Term], asks: Mapping[str, tuple[str, ...]]) -> dict[str, Term]:
    """The terms with more questions each, free ones beside those close to the labels."""
    return {name: one._replace(asks=one.asks + asks[name]) for name, one in terms.items()}


_IS = "[What is|What's|what is|Tell me|Give me|I need]"
_PAGE = "[|||| on this {doc}| shown]"

_BILLING: dict[str, Term] = {
    "invoice_no": term("invoice", "Invoice no.|Invoice #|Invoice number|Inv. No.|Document no.|Doc. No.|Bill no.|"
        "Invoice ID|Number|Tax invoice no.|Our invoice", f"{_IS} the [invoice|bill] number{_PAGE}?",
        "Which number does [the|this] {doc} have?", "What is the [number|no.] of [this|the] {doc}?"),
    "order_no": term("code", "Order no.|Order #|Order number|Sales order|Order ref.|SO number|Your order|PO number|"
        "P.O. #|Purchase order|Customer PO", f"{_IS} the [order|purchase order|PO] number{_PAGE}?",
        "Which order does this [belong to|refer to]?", "What order number was [used|given]?"),
    "quote_no": term("code", "Quote no.|Quotation no.|Offer number|Estimate #|Quote #|Proposal no.",
        "What is the [quote|quotation|offer] number?", "Which number does the [quote|offer] have?"),
    "delivery_no": term("code", "Delivery note no.|Delivery no.|Dispatch note|Shipment no.|Packing slip #",
        "What is the [delivery note|delivery|dispatch] number?", "Which delivery note is this?"),
    "customer_no": term("number", "Customer no.|Customer #|Customer number|Client no.|Customer ID|Client ID|Cust. No.|"
        "Your customer number", f"{_IS} the [customer|client] number{_PAGE}?", "Which customer number do I have?",
        "What is the [customer|client] [ID|id]?"),
    "date": term("date", "Invoice date|Date|Date of issue|Issued|Issue date|Billing date|Document date|Dated",
        "When was [this|the] {doc} [issued|sent|written|dated]?", "What is the [invoice date|date of the {doc}]?",
        "[Which|What] date does the {doc} [have|bear]?", "On [which|what] day was it issued?"),
    "due_date": term("date", "Due date|Payment due|Due|Payable by|Pay by|Please pay by|Date due|Payment due date|"
        "Due on|To be paid by", "When is [the|my] payment due?", "When [is it|is the {doc}] due?",
        "By [when|which date|what date] [must|should] [it|this|the {doc}|I] be paid?",
        "What is the [due date|deadline for payment]?",
        "[Until when|By when] do I have to pay?", "What is the last day to pay?"),
    "delivery_date": term("date", "Delivery date|Date of supply|Ship date|Shipped on|Date shipped|Service date|"
        "Expected delivery|Delivered on|Dispatch date", "When [was|is|will] it [be |][delivered|shipped|sent]?",
        "What is the [delivery|shipping] date?", "When [do I get|does] the delivery[| come]?"),
    "valid_until": term("date", "Valid until|Offer valid until|Quote valid to|Expires|Expiry date|Validity",
        "Until when is the [offer|quote] valid?", "When does the [offer|quote] expire?"),
    "terms": term("days", "Payment terms|Terms|Terms of payment|Payment conditions|Conditions of payment",
        "What are the [payment terms|terms of payment|terms]?", "Within how many days [must|should] it be paid?",
        "How long do I have to pay?"),
    "method": term("Bank transfer/Wire transfer/Credit card/Direct debit/Cheque/PayPal/Cash on delivery",
        "Payment method|Method of payment|Paid by|Payment type|Pay via", "How [is|was|should] it [be |]paid?",
        "What is the [payment method|method of payment]?", "By what means is it paid?"),
    "contact": term("person", "Contact|Sales rep|Your contact|Salesperson|Account manager|Contact person|Handled by|"
        "Clerk|Prepared by", "Who [is the contact person|is my contact|handles this|should I contact]?",
        "Who is the [salesperson|account manager|contact]?"),
    "reference": term("code", "Your reference|Your ref.|Customer ref.|Our ref.|Reference no.|Ref. no.|Reference",
        "What is the [reference|reference number]?", "Which reference is [given|quoted]?"),
    "carrier": term("DHL Express/UPS Ground/FedEx/DPD/Post/Own truck/Freight forwarder/Pick-up",
        "Ship via|Carrier|Shipping method|Delivered by|Mode of dispatch|Forwarder",
        "How [was|is|will] it [be |]shipped?",
        "Which carrier [delivers it|is used]?", "Who [ships|delivers|transports] the goods?"),
    "incoterms": term("EXW/FOB/DAP/DDP/CIF/FCA/CPT", "Incoterms|Delivery terms|Terms of delivery|Shipping terms",
        "What are the [delivery terms|terms of delivery|incoterms]?"),
    "parcels": term("count", "No. of packages|Parcels|Number of packages|Packages|Colli",
        "How many [packages|parcels] [are there|were sent]?", "What is the number of packages?"),
    "weight": term("weight", "Gross weight|Total weight|Shipping weight|Weight",
        "How [much does it weigh|heavy is it]?",
        "What is the [total |gross |]weight?"),
    "seller_vat": term("vat", "VAT no.|VAT ID|VAT Reg. No.|Tax ID|VAT number|Tax number|UID|GST no.|TIN|EIN",
        "What is the [VAT|tax] [number|ID|id][| of the seller]?", "Which [VAT|tax] number is given?"),
    "bank": term("Commerce Bank/First National Bank/Cantonal Bank/Savings Bank/Union Bank/Regional Credit "
        "Bank/Harbour Bank",
        "Bank|Bank name|Our bank|Beneficiary bank|Name of bank", "[What is the name of|Which is] the bank?",
        "[To|At] which bank [is it|must it be|should I] [paid|pay]?", "Which bank [is named|is given|do they use]?"),
    "iban": term("iban", "IBAN|IBAN no.|IBAN", "What is the [IBAN|iban|IBAN number]?",
        "[To which|Which] IBAN should I pay[| to]?",
        "Which IBAN is [given|printed|shown]?"),
    "bic": term("bic", "BIC|SWIFT|BIC/SWIFT|SWIFT code|Swift/BIC", "What is the [BIC|SWIFT code|bic]?",
        "Which [BIC|SWIFT code] is given?"),
    "account_no": term("account", "Account no.|Account number|A/C no.|Account|Acct. #|Bank account",
        f"{_IS} the account number{_PAGE}?", "Which account is it?", "Which account number is [given|shown|printed]?"),
    "sort_code": term("sort", "Sort code|Routing no.|ABA no.|Bank code|BSB|Branch code",
        "What is the [sort code|routing number|bank code]?"),
    "holder": term("company", "Account holder|Beneficiary|Account name|Payee|In favour of",
        "Who is the [account holder|beneficiary|payee]?", "[To whom|In whose name] is the account?",
        "Who gets the money?"),
    "subtotal": term("money", "Subtotal|Sub-total|Net amount|Total excl. VAT|Net total|Amount excl. tax|Total net|"
        "Total before tax|Goods total", "What is the [subtotal|net amount|amount before tax]?",
        "How much is it [before|without|excluding] tax?", "What is the total [excluding|without] [tax|VAT]?"),
    "discount": term("money", "Discount|Rebate|Less discount|Trade discount|Volume discount|Special discount",
        "How [much|large|big] is the discount?", "What [discount|reduction] [is given|did they give|was granted]?"),
    "shipping": term("money", "Shipping|Freight|Delivery charge|Postage & packing|Shipping & handling|Carriage|"
        "Transport",
        "How much [is|are|was] [charged for |][shipping|delivery|freight]?",
        "What [are the shipping costs|does delivery cost]?"),
    "tax": term("money", "VAT|Tax|Sales tax|GST|VAT amount|Value added tax|Tax amount|Total VAT|Total tax",
        "How much [tax|VAT] [is charged|is included|is there|do I pay]?", "What is the [tax|VAT] amount?",
        "How much [is|was] the [tax|VAT|value added tax]?"),
    "total": term("money", "Total|Grand total|Invoice total|Total incl. VAT|Total amount|Gross amount|Total gross|"
        "Gross total|Amount incl. tax", f"{_IS} the [total|total amount|grand total]{_PAGE}?",
        "How much is [it|the {doc}] [in total|altogether|in all]?",
        "What does [it|everything] [cost|come to] [in total|including tax]?",
        "What is the [gross amount|total including tax]?"),
    "paid": term("money", "Amount paid|Paid|Payments received|Deposit paid|Less payments|Prepayment|Deposit|Already "
        "paid",
        "How much [was|has been|is] [already |]paid?", "What [amount|sum] [was|has been] paid[| so far| already]?",
        "How much did [I|the customer] [already |]pay?"),
    "due": term("money", "Amount due|Balance due|Total payable|Please pay|Amount payable|Total due|Balance outstanding|"
        "Outstanding amount|Remaining balance|To pay|Amount to pay|Payable|Open amount",
        f"{_IS} the [amount due|balance due]{_PAGE}?",
        "How much [is due|do I owe|is outstanding|must be paid|has to be paid|is still to be paid|do I have to pay]?",
        "What [amount|sum] [must|should] I [pay|transfer]?", "What do I [owe|have to pay]?"),
}  # fmt: skip

_STATEMENT: dict[str, Term] = {
    "statement_date": term("date", "Statement date|Date of statement|Date|Issue date|Printed on|Closing date",
        "When was [this|the] {doc} [issued|made|printed]?", "What is the [statement date|date of the {doc}]?"),
    "period": term("period", "Statement period|Period|Billing period|Account period|Service period|Reporting period",
        "[What|Which] period does [it|this|the {doc}] cover?", "What is the [statement|billing] period?",
        "For [which|what] period is [this|the {doc}]?"),
    "statement_no": term("number", "Statement no.|Statement number|Sheet no.|Extract no.|Document no.",
        "What is the [statement|sheet] number?", "Which statement is this?"),
    "account_no": _BILLING["account_no"], "iban": _BILLING["iban"], "bic": _BILLING["bic"],
    "sort_code": _BILLING["sort_code"], "customer_no": _BILLING["customer_no"],
    "branch": term("city", "Branch|Your branch|Branch office|Office",
        "Which branch [is it|is named|keeps the account]?",
        "What is the [branch|name of the branch]?"),
    "account_type": term("Current account/Savings account/Private account/Checking account/Business account/Joint "
        "account",
        "Account type|Type of account|Product", "What [kind|type|sort] of account is [it|this]?",
        "What is the account type?"),
    "currency": term("USD/EUR/GBP/CHF/SEK/CAD/AUD/JPY", "Currency|Account currency|Ccy",
        "[Which|What] currency is [used|it in|the account in]?",
        "In [which|what] currency is the account?"),
    "opening": term("money", "Opening balance|Balance brought forward|Previous balance|Balance b/f|Starting balance|"
        "Balance at start|Old balance", "What [was|is] the [opening|starting|initial|previous] balance?",
        "How much was [on|in] the account at the [start|beginning]?",
        "What was the balance at the beginning[| of the period]?"),
    "closing": term("money", "Closing balance|Ending balance|New balance|Balance carried forward|Balance c/f|"
        "Final balance|Current balance", "What [was|is] the [closing|ending|final|new] balance?",
        "How much [is|was] [on|in] the account at the end?", "What is the balance at the end[| of the period]?"),
    "credits": term("money", "Total credits|Money in|Paid in|Total deposits|Deposits|Total paid in|Credits|Incoming",
        "How much [money |][came in|was paid in|was deposited][| in total]?",
        "What [is|are] the total [credits|deposits]?"),
    "debits": term("money", "Total debits|Money out|Paid out|Total withdrawals|Withdrawals|Debits|Outgoing",
        "How much [money |][went out|was withdrawn|was paid out|was spent][| in total]?",
        "What [is|are] the total [debits|withdrawals]?"),
    "card_no": term("card", "Card number|Card no.|Card|Credit card no.",
        "What is the [card number|number of the card]?",
        "[Which|What] card is it?"),
    "limit": term("money", "Credit limit|Spending limit|Total credit line|Card limit|Limit",
        "What is the [credit|spending] limit?",
        "How [high|large] is the credit limit?", "How much credit is [granted|allowed]?"),
    "available": term("money", "Available credit|Credit available|Still available|Available funds",
        "How much credit is [left|available]?",
        "What is the available credit?", "How much can still be spent?"),
    "minimum": term("money", "Minimum payment|Minimum payment due|Minimum due|Min. payment|Least amount payable",
        "What is the [minimum payment|least I must pay|smallest payment allowed]?",
        "How much [must|do] I [at least |have to ]pay at least?"),
    "interest": term("rate", "Interest rate|Annual percentage rate|APR|Rate of interest|Interest p.a.",
        "What is the [interest rate|rate of interest|APR]?",
        "How [high|much] is the interest?"),
    "due": _BILLING["due"], "due_date": _BILLING["due_date"], "bill_no": _BILLING["invoice_no"],
    "meter": term("number", "Meter no.|Meter number|Meter ID|Meter serial no.|Meter",
        "What is the [meter number|number of the meter|meter ID]?",
        "Which meter [is it|was read]?"),
    "reading_old": term("reading", "Previous reading|Old reading|Last reading|Opening reading|Reading at start",
        "What was the [previous|old|last|earlier] [meter reading|reading]?",
        "What did the meter show [before|at the start]?"),
    "reading_new": term("reading", "Current reading|New reading|Present reading|Closing reading|Reading at end",
        "What is the [current|new|latest|present] [meter reading|reading]?",
        "What [does|did] the meter show [now|at the end]?"),
    "usage": term("usage", "Consumption|Usage|Units used|Energy used|Total usage|Quantity used",
        "How much [was|is] [used|consumed]?",
        "What [is|was] the [consumption|usage]?"),
    "tariff": term("Basic/Standard 24/Green Plus/Home Flex/Economy 7/Comfort/Unlimited L/Mobile M/Family 20 "
        "GB/Fiber 500",
        "Tariff|Plan|Rate plan|Your plan|Your tariff|Contract type",
        "[Which|What] [tariff|plan] [is it|do I have|applies]?", "What is the name of the [tariff|plan]?"),
    "phone_no": term("phone", "Phone number|Mobile no.|Your number|Subscriber no.|Line",
        "What is the [phone|mobile|telephone] number?",
        "For which number is the bill?"),
    "supply": term("full_address", "Supply address|Service address|Premises|Place of supply",
        "What is the [supply|service] address?",
        "[Where|To which address] is it supplied?"),
    "balance_old": term("money", "Previous balance|Last bill|Balance from last bill|Amount of last bill",
        "What was the [previous balance|amount of the last bill]?",
        "How much was the last bill?"),
    "received": term("money", "Payments received|Payment received|Your payments|Payments|Payments - thank you",
        "How much was paid[| since the last bill]?",
        "[What|How much] was received?"),
    "charges": term("money", "New charges|Current charges|Charges this period|Charges this month|New purchases",
        "[What|How much] are the [new|current] charges?",
        "How much is charged for this period?"),
}  # fmt: skip

_PAYROLL: dict[str, Term] = {
    "employee": term("person", "Employee|Employee name|Name|Staff member|Name of employee",
        "[Who is|What is the name of] the employee?",
        "Whose [payslip|pay slip|pay] is [this|it]?", "Who [gets|receives|earned] this pay?"),
    "employee_no": term("number", "Employee no.|Employee ID|Personnel no.|Staff no.|Emp. #|Payroll no.",
        "What is the [employee|personnel|staff] number?", "What is the employee's [ID|number]?"),
    "job": term("job", "Job title|Position|Role|Function|Designation|Occupation",
        "What is the employee's [job|position|job title]?",
        "[As what|In which position] does [the employee|he or she] work?"),
    "department": term("department", "Department|Dept.|Cost centre|Division|Unit",
        "[Which|What] department [is it|does the employee work in|is given]?"),
    "pay_date": term("date", "Pay date|Date of payment|Payment date|Paid on|Payday",
        "When [is|was] the [salary|pay|wage] paid?",
        "What is the [pay|payment] date?", "When does the employee get the money?"),
    "pay_period": term("month_year", "Pay period|Period|Month|Salary for|Pay month",
        "[For which month|For what period] is [the|this] pay?",
        "What is the pay period?"),
    "tax_code": term("1257L/BR/S-2/I/A0/M1/K475/III", "Tax code|Tax class|Tax group|Tax bracket",
        "What is the tax [code|class]?"),
    "ssn": term("ssn", "Social security no.|SSN|NI number|Insurance no.|National insurance no.",
        "What is the [social security|insurance] number?"),
    "start": term("date", "Start date|Date of hire|Employed since|Joined|Entry date",
        "[Since when is the employee employed|When did the employee start]?"),
    "gross": term("money", "Gross pay|Gross salary|Total earnings|Total gross pay|Gross earnings",
        "What is the [employee's |]gross [pay|salary]?",
        "How much [is earned|is the pay] before deductions?", "What are the total earnings?"),
    "deducted": term("money", "Total deductions|Deductions total|Sum of deductions|Total deducted",
        "How much is deducted[| in total| altogether]?",
        "What are the total deductions?", "What is the sum of the deductions?"),
    "net": term("money", "Net pay|Net salary|Take-home pay|Net payment|Amount paid out|Payout|Net wages",
        "What is the employee's net [pay|salary]?", "How much [is paid out|does the employee get|is transferred]?",
        "What is the [take-home pay|net salary|net pay]?", "How much is left after deductions?"),
    "bank_account": term("iban", "Paid to account|Bank account|Transferred to|Account|IBAN",
        "[To|Into] which account is the [salary|pay] paid?",
        "What is the [bank account|account] of the employee?"),
}  # fmt: skip

BILLING = widened(_BILLING, business_asks_billing.ASKS)
STATEMENT = widened(_STATEMENT, business_asks_accounts.ASKS)
PAYROLL = widened(_PAYROLL, business_asks_payroll.ASKS)
