"""Questions about the entries of an account, the parts of a wage and the lines of a bill, each for one column."""

from __future__ import annotations

# Entries of an account: the amount of an entry, whichever way it went; only money out; only money in.
ENTRY = (
    "What is the amount of [the entry |]{item}?", "How much [was|is] {item}?", "What was the amount of '{item}'?",
    "How much was [booked|posted|entered] for {item}?", "{item}: how much?", "amount of {item}", "{item} how much",
    "What [sum|amount] was moved with {item}?", "How [high|large|big] was the entry {item}?", "sum booked for {item}",
    "What does {item} amount to?", "Look up the amount of {item}.", "Find the sum booked for {item}.",
    "By how much did {item} change the account?", "Which amount belongs to {item}?", "How much money was {item}?",
    "I am going through my {doc}: how much was {item}?", "For how much was {item} entered?",
    "I need the amount of the entry {item}.", "The entry {item}, what sum was it?", "What figure was booked as {item}?",
)  # fmt: skip
ENTRY_OUT = (
    "How much was [paid|charged|debited] for {item}?", "How much did {item} cost me?", "What did I pay for {item}?",
    "How much money [left|went off] the account for {item}?", "What was taken off my account for {item}?",
    "How much was I charged: {item}?", "What [sum|amount] was charged as {item}?", "money out for {item}",
    "How much did the customer pay for {item}?", "What was spent on {item}?", "paid for {item}",
    "My budget: how much went on {item}?", "How much have I spent with {item}?", "Which sum was debited for {item}?",
    "How expensive was {item}?", "Check what was charged for {item}.", "With {item}, how much was paid?",
)  # fmt: skip
ENTRY_IN = (
    "How much [came in|was received|was credited] for {item}?", "What did I receive as {item}?", "received as {item}",
    "How much money came in with {item}?", "What [sum|amount] was credited as {item}?", "money in from {item}",
    "How much was paid in as {item}?", "By how much did {item} raise the account?", "How much did {item} bring in?",
    "What was added to my account by {item}?", "How much did I get: {item}?", "Which sum was credited for {item}?",
    "Has it arrived: how much was {item}?", "How much did the customer receive as {item}?",
    "I was waiting for {item}: how much came in?", "Look up how much {item} brought.",
)  # fmt: skip
WHEN = (
    "When was {item} [booked|posted|entered]?", "On [which|what] [date|day] was {item}[| booked]?", "{item}, when",
    "What is the date of {item}?", "When did {item} take place?", "Which day was {item}?", "day of {item}",
    "On what day does {item} appear?", "When does {item} show up on the {doc}?", "date {item} was booked",
    "Find the day of {item}.", "Look up when {item} was booked.", "When did they book {item}?",
    "I forgot when it was: {item}?", "{item} was on which day?", "At [what|which] date was {item} entered?",
    "When exactly was {item}?", "Tell me the booking day of {item}.",
)  # fmt: skip
VALUED = (
    "What is the value date of {item}?", "value date of {item}", "With what value date was {item} booked?",
    "From [which|what] day does {item} count for interest?", "As of [which|what] day is {item} valued?",
    "On [which|what] day did {item} take effect?", "When did {item} become effective?", "{item}: value date?",
    "Which value date [does|did] {item} have?", "From when on does {item} bear interest?", "{item} effective when",
    "Not the booking but the value date of {item}?", "Find the value date of {item}.", "What is {item} valued as of?",
    "As from which date was {item} effective?",
)  # fmt: skip
REFERENCE = (
    "What is the reference of {item}?", "Which reference does {item} have?", "reference of {item}",
    "Under [which|what] reference was {item} booked?", "What reference number goes with {item}?",
    "{item}: which reference?", "I want to ask about {item}: what reference do I give?", "ref no. of {item}",
    "By which number can {item} be traced?", "Look up the reference for {item}.", "Find {item}'s reference number.",
    "How is {item} referenced?", "What is the reference number for the entry {item}?",
    "With which reference does {item} appear?", "Which number identifies the entry {item}?",
)  # fmt: skip
AFTER = (
    "What was the balance after {item}?", "What [is|was] the balance on the line {item}?", "balance after {item}",
    "How much was left after {item}?", "What was left on the account after {item}?", "{item}: balance afterwards?",
    "How much was there on the account after {item}?", "What did the account hold once {item} was booked?",
    "After {item}, how much money did I have?", "Where did the account stand after {item}?", "left after {item}",
    "To what did {item} bring the balance?", "What was the new balance after {item}?",
    "Not the amount but the balance after {item}?", "Which balance follows {item}?",
    "How much remained when {item} was booked?", "Look up the running balance at {item}.",
    "I need the balance as it stood after {item}.", "What did I own on the account right after {item}?",
)  # fmt: skip
SPENT = (
    "What [sum|amount] was paid on {day}?", "How much [was|went] [paid|debited|out] on {day}?", "paid out on {day}",
    "What [amount|sum] was [paid|debited] on {day}?", "How much was spent on {day}?", "How much did I spend on {day}?",
    "How much money left the account on {day}?", "What was taken off my account on {day}, in money?",
    "On {day}, how much was charged?", "What did the entry of {day} cost?", "What sum went out on {day}?",
    "How large was the payment [on|of] {day}?", "What did I pay on {day}, how much?", "amount charged {day}",
    "Look up how much was spent on {day}.", "{day}: how much was paid?", "I paid something on {day}: how much?",
    "What is the amount debited on {day}?", "Tell me the sum charged on {day}.",
)  # fmt: skip
CAME = (
    "How much [came in|was credited|was received] on {day}?", "What [amount|sum] was credited on {day}?",
    "How much money came in on {day}?", "What was paid in on {day}, how much?", "money received {day}",
    "How much did I receive on {day}?", "What sum was added to the account on {day}?", "credited on {day}",
    "On {day}, how much was received?", "How large was the credit [on|of] {day}?", "{day}: how much came in?",
    "Which amount arrived on {day}?", "By how much did the account grow on {day}?", "How much did I get on {day}?",
    "Look up how much came in on {day}.", "What is the amount credited on {day}?",
    "Something came in on {day}: how much?",
)  # fmt: skip
WHAT = (
    "[What|Which entry|Which transaction] [was|is] [booked|listed|posted] on {day}?", "What happened on {day}?",
    "What is the description of the entry [on|of] {day}?", "What was it for on {day}?", "entry of {day}",
    "What was the money for on {day}?", "Which transaction took place on {day}?", "{day}: what was booked?",
    "What did the bank write for {day}?", "What text stands at the entry of {day}?", "What was going on on {day}?",
    "I do not remember {day}: what was booked?", "How is the entry of {day} described?", "transaction on {day}",
    "What kind of movement was there on {day}?", "Look up the transaction of {day}.", "Find the entry dated {day}.",
    "Explain the entry of {day}: what is it?",
)  # fmt: skip
BALANCE_ON = (
    "What was the balance on {day}?", "How much was on the account on {day}?", "balance on {day}",
    "How much money did I have on {day}?", "What was left on the account on {day}?", "balance as of {day}",
    "Where did the account stand on {day}?", "What did the account hold [on|at the end of] {day}?",
    "After the entry of {day}, what was the balance?", "How much remained after the entry of {day}?",
    "What is the running balance at {day}?", "Look up the balance of {day}.", "{day}: what was the balance?",
    "To prove what I had on {day}: which balance?", "How much was left after {day}?",
)  # fmt: skip
# Parts of a wage: this time, and since the year began.
EARNED_LINE = (
    "How much is the {item}[| this time]?", "What is the amount of {item}[| this period]?", "{item} this time",
    "How much [was|is] paid for {item}[| this time]?", "What is the {item} this period?", "{item} for this period",
    "What did I [get|earn] in {item} this time?", "How much {item} did the employee get for this period?",
    "I want to check my pay: how much is the {item}?", "How much was I paid for {item} on this {doc}?",
    "What sum comes from {item} this period?", "What does the {item} come to for this period?",
    "How much of this pay is {item}?", "Look up the {item} for this pay period.", "this period's {item}",
    "What did the employer pay in {item} this time?", "How much does the {item} add to this pay?",
    "Find how much {item} was paid now.", "With how much is {item} in this pay?",
)  # fmt: skip
TAKEN_LINE = (
    "How much is the {item}[| this time]?", "How much [was|is] [deducted|withheld|taken off] for {item}?",
    "What is the deduction for {item}?", "What [amount|sum] goes to {item}?", "{item} deduction this period",
    "How much did they take off my pay for {item} this time?", "What do I lose to {item} this period?",
    "How much of my pay goes to {item} this time?", "What was kept back for {item} this time?",
    "I want to check my pay: what was deducted for {item}?", "How much less do I get this time because of {item}?",
    "What does the {item} take away from this pay?", "By how much does {item} lower this pay?", "taken off for {item}",
    "How much had the employee to pay for {item} this period?", "Look up what was withheld for {item} this time.",
    "What was subtracted for {item} on this {doc}?", "Find the {item} deduction for this period.",
)  # fmt: skip
PAY_YEAR = (
    "What is the {item} [for the year|year to date|so far this year]?", "How much is {item} year to date?",
    "{item} year to date", "{item} so far this year", "How much {item} has added up this year?", "{item} since January",
    "Over the year so far, how much is the {item}?", "What does {item} come to since the start of the year?",
    "What is the running total of {item} for the year?", "How much has been booked as {item} since January?",
    "Not just this time: how much {item} in the whole year so far?", "To date, how much {item} has there been?",
    "For my tax return: how much {item} in the year up to now?", "Look up the yearly figure for {item}.",
    "By now, what has {item} reached this year?", "What is the cumulated {item} of the year?", "ytd figure of {item}",
)  # fmt: skip
# Lines of a bill: what the line comes to, a single piece, how many, the number, the unit.
AMOUNT = (
    "How much was charged for {item}?", "What is the [amount|line total|total] for {item}?",
    "How much [is|comes to] the line {item}[| in total]?", "What [amount|sum] is [listed|billed|charged] for {item}?",
    "{item}: what is the [amount|line total]?", "What does {item} come to altogether?", "line total of {item}",
    "How much do all of the {item} cost together?", "What do I pay for {item} in total?", "total for {item}",
    "How much money goes to {item} altogether?", "What does the whole line {item} add up to?",
    "For {item}, how much is billed, all pieces together?", "What is {item} times its quantity, in money?",
    "How much of the bill is {item}?", "With what sum does {item} appear on the {doc}?", "{item} altogether",
    "I check each line: what does {item} come to?", "Look up what is charged in total for {item}.",
    "Not one piece but all of {item}: how much?", "Find the line amount of {item}.", "What was the sum for {item}?",
)  # fmt: skip
COST = (  # where the quantity is one
    "How much [is {item}|was {item}|does {item} cost|did {item} cost]?", "What does {item} cost?", "cost of {item}",
    "What do I pay for {item}?", "How expensive is {item}?", "What was paid for {item}?", "{item} costs how much",
    "For how much [is|was] {item} sold?", "What [is|was] charged for {item}?", "What do they want for {item}?",
    "How much money is {item}?", "Tell me what {item} costs.", "I want to know what I pay for {item}.",
    "{item}: how much?", "Look up the cost of {item}.",
)  # fmt: skip
EACH = (
    "What does [one|a single] {item} cost?", "What is the price of [one|a single] {item}?", "price each for {item}",
    "How much is {item} [apiece|each|per piece]?", "What does {item} cost per unit?", "unit price of {item}",
    "How much do they want for a single {item}?", "At [what|which] price per piece is {item} sold?",
    "If I bought just one {item}, what would I pay?", "Not the line total: what is the price of one {item}?",
    "What is {item} [each|per piece]?", "At which rate is {item} [charged|billed]?", "one {item} costs how much",
    "For {item}, what is the price before multiplying?", "What is charged per unit of {item}?",
    "Look up the price of a single {item}.", "I compare offers: what does one {item} cost?",
    "Find the single price of {item}.", "How much per unit for {item}?", "By piece, what is {item}?",
)  # fmt: skip
QUANTITY = (
    "How many {item} [are there|are listed]?", "What quantity of {item} is [listed|on the {doc}]?",
    "How many units of {item} are on the {doc}?", "quantity of {item}", "how many {item}", "number of {item}",
    "In what number [is {item} listed|does {item} appear]?", "What is the quantity on the line {item}?",
    "How often is {item} counted on its line?", "What number of {item} is [listed|given]?", "{item}: how many?",
    "Not the price: how many of {item}?", "What is the count of {item}?", "Which quantity goes with {item}?",
    "I am counting the boxes: how many {item}?", "Tell me how many of {item} there should be.",
    "Look up the quantity of {item}.", "{item} - what quantity?",
)  # fmt: skip
ORDERED = (  # on papers about what is bought
    "How many {item} were [ordered|bought]?", "How many of {item} did I order?", "How many {item} do I pay for?",
    "How many {item} does the customer take?", "How many pieces of {item} are charged?", "ordered quantity of {item}",
    "What quantity of {item} was ordered?", "For how many {item} do I have to pay?",
    "By how many is {item} multiplied?",
    "How many units of {item} are in the order?", "How many {item} did they sell?",
    "Was it one or more: how many {item} were bought?",
)  # fmt: skip
DELIVERED = (  # on delivery notes
    "How many {item} were [delivered|shipped|sent]?", "How many of {item} should be in the parcel?",
    "How many {item} came with the delivery?", "What quantity of {item} was delivered?", "delivered quantity of {item}",
    "How many {item} do I have to unpack?", "How many units of {item} were shipped?",
    "Count of {item} in the delivery?",
    "Is it complete: how many {item} should there be?", "How many {item} did the driver bring?",
    "How many pieces of {item} did they send?", "For the stock: how many {item} came in?",
)  # fmt: skip
CODE = (
    "What is the [item number|article number|code|SKU|part number] of {item}?", "article number of {item}",
    "Which [code|article number|item number] does {item} have?", "{item} item no", "order code of {item}",
    "Under [which|what] [number|code] is {item} listed?", "What number do I need to order {item} again?",
    "By which code does the seller know {item}?", "How is {item} coded?", "With what code can {item} be ordered?",
    "I want the same again: what is the article number of {item}?", "Which number identifies {item}?",
    "Look up the code of {item}.", "Find the article number for {item}.", "{item}: which item number?",
    "What do I type in to find {item}, which code?", "Tell me the article code of {item}.",
)  # fmt: skip
WITH_CODE = (
    "[Which|What] [item|article|product] has the [number|code] {value}?", "What is [{value}|item {value}]?",
    "What does [article|item|position] {value} [stand for|describe]?", "What is sold under the number {value}?",
    "Which article goes by {value}?", "What hides behind the code {value}?", "product with code {value}",
    "What thing has the item number {value}?", "To which [article|product] does {value} belong?",
    "What did I order under {value}?", "item {value} is what", "What is the name of article {value}?",
    "How is article {value} described?", "Look up what {value} is.", "Find the product with the number {value}.",
    "The code {value}, what article is it?", "I only know the number {value}: what is it?",
)  # fmt: skip
WITH_AMOUNT = (
    "[Which|What] [item|article|line] comes to {value}?", "For [which|what] item was {value} charged in total?",
    "What is the {value} for?", "What was billed at {value} altogether?", "line of {value}", "item for {value}",
    "[Which|What] article has the line total {value}?", "On what was {value} spent?", "What did I pay {value} for?",
    "What product makes up {value} of the bill?", "I wonder about the {value}: what is it for?",
    "To which line does the amount {value} belong?", "What costs {value} in total?",
    "Look up what {value} was charged for.", "Find the item with the amount {value}.", "The {value}, what was that?",
)  # fmt: skip
UNIT = (
    "In [what|which] unit is {item} [sold|billed|counted]?", "What is the unit of {item}?", "unit of {item}",
    "How is {item} counted, by piece, hour or what?", "Which unit of measure does {item} have?", "{item} in what unit",
    "By what is {item} measured?", "In what is the quantity of {item} given?", "{item}: sold by the what?",
    "Is {item} sold by weight, by piece or otherwise?", "What does one unit of {item} mean?",
    "The quantity of {item} is in what unit?", "What unit goes with {item}?", "Look up the unit of {item}.",
    "Per what is {item} charged?", "How is {item} [packed|measured], in which unit?",
)  # fmt: skip
RATE = (
    "What is the [VAT|tax] rate?", "At [which|what] rate is [tax|VAT] charged?", "vat in percent", "rate of tax",
    "How many percent is the [tax|VAT]?", "What [percentage|rate] of [tax|VAT] [applies|is charged]?",
    "How high is the [tax|VAT], in percent?", "What percentage goes to the state?", "How much tax, in percent?",
    "By how many percent does tax raise the price?", "Which [tax|VAT] rate did they use?",
    "What share is added as tax, in percent?", "Look up the percentage of the tax.", "Which percentage is the tax?",
    "For the books: which tax rate applies?", "Tell me the percentage, not the amount, of the tax.",
)  # fmt: skip
# Charges of a power or phone bill: the amount, what was used, the price of a unit.
LINE = (
    "How much is [charged for |the |]{item}?", "What is the [amount|charge] for {item}?", "charge for {item}",
    "What does {item} [cost|come to]?", "How much [do I pay|was charged] for {item}?", "{item} how much money",
    "What do I pay for {item} altogether?", "What sum is billed for {item}?", "How much of the bill is {item}?",
    "What did {item} cost me this time?", "With what amount is {item} billed?", "How expensive is {item} in total?",
    "I want to save: how much goes on {item}?", "How much money do they take for {item}?", "total cost of {item}",
    "Look up what is charged for {item}.", "Find the amount billed for {item}.", "{item}: what does it come to?",
    "What is on the bill for {item}, in money?",
)  # fmt: skip
USED = (
    "What quantity of {item} is billed?", "How many units of {item} were used?", "units billed for {item}",
    "How much was used for {item}, in units?", "For how many units is {item} charged?", "{item} number of units",
    "How many units are charged under {item}?", "What was the usage for {item}?", "quantity of {item}",
    "Not the money: how many units of {item}?", "On how many units is {item} worked out?",
    "What number of units stands at {item}?", "Look up the units for {item}.", "{item}: how many units?",
    "By how many units is the rate of {item} multiplied?",
)  # fmt: skip
PER_UNIT = (
    "What does one unit of {item} cost?", "What is the price per unit of {item}?", "unit rate of {item}",
    "At [which|what] rate is {item} charged?", "How much is {item} per unit?", "price of one unit, {item}",
    "What do they charge per unit for {item}?", "What is the tariff per unit for {item}?", "{item}: price per unit?",
    "Not the whole sum: what is the unit price of {item}?", "How expensive is a single unit of {item}?",
    "I compare providers: what is one unit of {item}?", "Look up the unit price of {item}.",
    "By which rate are the units of {item} multiplied?", "Which price per unit applies to {item}?",
)  # fmt: skip
