"""Questions about dense tables by the names of row and column."""

from __future__ import annotations

CELL = (
    "What is the {column} [of|for] {row}?", "what is {column} for {row}", "{row} {column}?", "{row} {column}",
    "How [much|high] is the {column} of {row}?", "[For|In the row] {row}, what is the {column}?",
    "What [figure|value|number] is given for {row} under {column}?", "Look up {column} for {row}.",
    "What does {row} have [under|in the column] {column}?", "Find the {column} of {row}.", "{column} of {row}",
    "As [to|for] {row}: what does the table say under {column}?", "Which {column} does {row} have?",
    "Tell me the {column} for {row}.", "I need the {column} of {row}.", "What {column} is listed for {row}?",
    "According to the table, what is the {column} of {row}?", "What stands under {column} for {row}?",
    "What's {row}'s {column}?", "On the line {row}, what is [in the column|under] {column}?", "{row} - {column}",
    "What did they put for {row} under {column}?", "Where {row} and {column} meet, what is written?",
    "I only need one cell: {row}, {column}.", "What do I read for {row} in the column {column}?",
    "Give {row}'s entry under {column}.", "Check the {column} of {row} for me.",
)  # fmt: skip
PERIOD = (  # {column}: a month, a quarter or a year
    "What was {row} in {column}?", "What is the [figure|value] [of|for] {row} in {column}?", "{row} {column}",
    "How much was {row} in {column}?", "What did {row} [reach|come to] in {column}?", "{row} in {column}?",
    "How [high|large] was {row} in {column}?", "For {column}, what is {row}?", "What was booked as {row} in {column}?",
    "In {column}, what did {row} amount to?", "How much {row} was there in {column}?", "{column}: how much {row}?",
    "What number did they report for {row} in {column}?", "What does the table say on {row} for {column}?",
    "Look up {row} for {column}.", "Find {row} in {column}.", "I need the figure of {column} for {row}.",
    "I compare periods: what was {row} in {column}?", "What sum stands at {row} for {column}?",
    "Where did {row} stand in {column}?", "How much did the company show as {row} in {column}?",
    "Tell me how much {row} was in {column}.", "Going back to {column}: how much was {row}?",
)  # fmt: skip
PLANNED = (  # {year}
    "What was budgeted for {row} in {year}?", "How much was planned for {row} in {year}?", "{row} budget {year}",
    "What [is|was] the budget for {row} in {year}?", "What did they plan for {row} in {year}?", "{row} planned {year}",
    "How much {row} did the budget of {year} foresee?", "What figure for {row} was in the plan of {year}?",
    "What {row} did the company expect when it made the budget of {year}?", "{year}: what was the plan for {row}?",
    "Not what it came to: what was planned for {row} in {year}?", "Look up the budget of {year} for {row}.",
    "With how much {row} was {year} planned?", "Which {row} did the plan of {year} assume?",
    "According to plan, how much should {row} have been in {year}?",
)  # fmt: skip
REACHED = (  # {year}
    "What did {row} really come to in {year}?", "What was the actual {row} in {year}?", "{row} actual {year}",
    "How much was {row} in fact in {year}?", "What is the actual figure for {row} in {year}?",
    "Not the plan: what was {row} in the end in {year}?", "How did {row} turn out in {year}?",
    "What was {row} in {year}, leaving the budget aside?", "Look up the actual {row} of {year}.",
    "What did {row} really amount to in {year}?", "{year}: what did {row} really reach?",
    "How much {row} was there in {year} in reality?", "What {row} did {year} bring in the end?",
    "When {year} was over, how much was {row}?", "To compare with the plan: what was {row} really in {year}?",
)  # fmt: skip
WHICH = (
    "[Which|What] {thing} has {value} [in|under|for] {column}?", "[Which|What] {thing} has a {column} of {value}?",
    "For which {thing} is the {column} {value}?", "Whose {column} is {value}?", "{thing} with {column} {value}",
    "With which {thing} does the table list {value} under {column}?", "Who or what has {value} under {column}?",
    "The {column} is {value}: which {thing} is it?", "To which {thing} does {value} in the column {column} belong?",
    "On which line is the {column} {value}?", "Find the {thing} whose {column} is {value}.",
    "I am looking for the {thing} with {value} under {column}.", "Which row shows {value} for {column}?",
    "Next to which {thing} do I read {value} under {column}?", "Name the {thing} with a {column} of {value}.",
    "[Which|What] {thing} is listed with {value} under {column}?", "Look up the {thing} with the {column} {value}.",
    "{column} = {value}, which {thing}?",
)  # fmt: skip
TOTAL = (
    "What is the total for {column}?", "What is the total {column}?", "How much is {column} in total?",
    "What is the [sum|total] of [the column |]{column}?", "What is the overall {column}?", "{column} total",
    "What does the column {column} add up to?", "All rows together, what is the {column}?", "sum of {column}",
    "What [stands|is] below {column} as the sum?", "How much is {column} altogether?", "What is {column} overall?",
    "Adding everything up, what is the figure for {column}?", "What figure ends the column {column}?",
    "Look up the total of {column}.", "I need the sum of {column}, not the single rows.",
    "With what total does {column} close?", "In the last row, what is the {column}?", "Find the total {column}.",
    "What total do they give for {column}?",
)  # fmt: skip
PERIOD_WHICH = (  # {column}: a month, a quarter or a year
    "[Which|What] {thing} [was|came to|stood at] {value} in {column}?", "What was {value} in {column}?",
    "In {column}, which {thing} [was|amounted to] {value}?", "For which {thing} is {value} given in {column}?",
    "To which {thing} does the {value} of {column} belong?", "{thing} with {value} in {column}",
    "{value} in {column}: which {thing}?", "What does the figure {value} in {column} stand for?",
    "Which line shows {value} for {column}?", "Find the {thing} that was {value} in {column}.",
    "I read {value} for {column}: on which line?", "Look up which {thing} reached {value} in {column}.",
    "Name the {thing} with {value} in {column}.", "What is the {value} of {column}?",
    "Whose figure for {column} is {value}?",
    "Which {thing} has {value} in the column of {column}?",
)  # fmt: skip
PERIOD_TOTAL = (
    "What is the total [for|of|in] {column}?", "How much is it in total in {column}?", "total {column}",
    "What does [everything in|the column of] {column} add up to?", "All lines together, how much is {column}?",
    "What is the sum [for|of] {column}?", "Adding up all lines, what comes out for {column}?", "sum of {column}",
    "How much was there altogether in {column}?", "What was the overall sum in {column}?", "{column} in total?",
    "With what total does {column} close?", "Look up the total for {column}.", "{column} altogether",
    "I need the total of {column}, not the single lines.", "What total do they give for {column}?",
)  # fmt: skip
GROUP = (
    "[Which|What] group does {row} belong to?", "Under [which|what] heading is {row}[| listed]?", "group of {row}",
    "To which [group|part] of the table does {row} belong?", "In which [group|section] do I find {row}?",
    "[Under|Below] which subheading does {row} stand?", "What is the heading of the block with {row}?",
    "Where is {row} sorted in, which group?", "Which heading covers {row}?", "In what block is {row}?",
    "{row} is in which group?", "Into which group was {row} put?", "What group is {row} part of?",
    "Look up the group of {row}.", "Under which title do they list {row}?", "Find the heading above {row}'s block.",
)  # fmt: skip
