"""The ways to ask for what has to be worked out: counts, comparisons, yes or no, and what the page does not have.

A name with an ending (`_chart`, `_table`, `_bill`) holds the wordings of one setting, with `_dated` those for things
that are numbers themselves, such as years; without an ending, those of all.
"""

_MORE = "[more|greater|higher|larger]"
_LESS = "[less|smaller|lower]"

EXACT = {  # what is asked about receipts in these very words
    "company": "What is the name of the company on this receipt?",
    "date": "What is the date on this receipt?",
    "address": "What is the address of the company on this receipt?",
    "total": "What is the total amount on this receipt?",
}
TEMPLATES: dict[str, tuple[str, ...]] = {
    # -- the largest, the smallest, and those next to them
    "highest_chart": (
        "[Which|What] {thing} has the [highest|largest|greatest|biggest|maximum] [value|{measure}|{shape}]{group}?",
        "[Which|What] is the [highest|largest|biggest] {shape}{group}?",
        "What {thing} had the [highest|largest|greatest] [number|value|{measure}]{group}?",
        "[For|In] which {thing} is the [value|{measure}] the [highest|largest]{group}?",
        "Where is the [maximum|peak|highest point]{group}?",
        "Which {thing} [leads|comes out on top|is at the top]{group}?",
    ),
    "lowest_chart": (
        "[Which|What] {thing} has the [lowest|smallest|least|minimum] [value|{measure}|{shape}]{group}?",
        "[Which|What] is the [lowest|smallest|shortest] {shape}{group}?",
        "What {thing} had the [lowest|smallest|least] [number|value|{measure}]{group}?",
        "[For|In] which {thing} is the [value|{measure}] the [lowest|smallest]{group}?",
        "Where is the [minimum|lowest point]{group}?",
    ),
    "highest_table": (
        "[Which|What] {thing} has the [highest|largest|greatest|maximum] [value|number|figure]{group}?",
        "[For|In] which {thing} is the [value|figure]{group} the [highest|largest]?",
        "Which {thing} [leads|is at the top|ranks first]{group}?",
        "[Name|Give] the {thing} with the [highest|largest] [value|figure]{group}.",
    ),
    "lowest_table": (
        "[Which|What] {thing} has the [lowest|smallest|least|minimum] [value|number|figure]{group}?",
        "[For|In] which {thing} is the [value|figure]{group} the [lowest|smallest]?",
        "[Name|Give] the {thing} with the [lowest|smallest] [value|figure]{group}.",
        "Which {thing} [is at the bottom|ranks last]{group}?",
    ),
    "highest_bill": (
        "Which [item|product|article] [costs|cost] the most?",
        "[What|Which] is the most expensive [item|product|article|thing][| here| on the {doc}| on the page]?",
        "Which item has the [highest|largest] [price|amount]?",
        "[On|For] [what|which item] was most [money |]spent?",
        "What is the dearest item[| on this {doc}]?",
    ),
    "lowest_bill": (
        "Which [item|product|article] [costs|cost] the least?",
        "[What|Which] is the [cheapest|least expensive] [item|product|article|thing][| here| on the {doc}]?",
        "Which item has the [lowest|smallest] [price|amount]?",
        "What is the cheapest thing [bought|on this {doc}]?",
    ),
    "second_highest": (
        "[Which|What] {thing} has the second [highest|largest|greatest] [value|{measure}]{group}?",
        "[Which|What] is the second [highest|largest] {thing} by value{group}?",
        "Which {thing} [comes second|ranks second|is in second place]{group}[| by value]?",
        "Which {thing} has the [highest|largest] [value|{measure}]{group} after the first?",
    ),
    "second_lowest": (
        "[Which|What] {thing} has the second [lowest|smallest] [value|{measure}]{group}?",
        "[Which|What] is the second [lowest|smallest] {thing} by value{group}?",
        "Which {thing} is [next to last|last but one]{group} by value?",
    ),
    "highest_value": (
        "What is the [highest|largest|maximum|greatest] [value|number]{group}?",
        "What was the [highest|maximum|largest] {measure}{group}?",
        "How [high|large] is the [largest|highest] [value|{measure}]{group}?",
        "What is the value of the [highest|largest|tallest] {shape}{group}?",
        "[Tell me|Give] the [maximum|largest] value{group}.",
    ),
    "lowest_value": (
        "What is the [lowest|smallest|minimum|least] [value|number]{group}?",
        "What was the [lowest|minimum|smallest] {measure}{group}?",
        "How [high|large] is the [smallest|lowest] [value|{measure}]{group}?",
        "What is the value of the [lowest|smallest|shortest] {shape}{group}?",
    ),
    "larger": (
        "Which is [larger|higher|greater|bigger], {a} or {b}{group}?",
        "Which [has|shows] the [larger|higher|greater] [value|{measure}]{group}[:|,] {a} or {b}?",
        "Which {thing} [has|had] [more|the higher value]{group}[:|,|] {a} or {b}?",
        "[Between|Of] {a} and {b}, which is [larger|higher]{group}?",
    ),
    "smaller": (
        "Which is [smaller|lower|less], {a} or {b}{group}?",
        "Which [has|shows] the [smaller|lower] [value|{measure}]{group}[:|,] {a} or {b}?",
        "Which {thing} [has|had] [less|the lower value]{group}[:|,|] {a} or {b}?",
        "[Between|Of] {a} and {b}, which is [smaller|lower]{group}?",
    ),
    "larger_bill": (
        "Which [costs more|is more expensive|is dearer], {a} or {b}?",
        "Which item [costs|cost] more[:|,] {a} or {b}?",
        "[Between|Of] {a} and {b}, which [costs more|is more expensive]?",
        "What [costs|cost] more, {a} or {b}?",
    ),
    "smaller_bill": (
        "Which [costs less|is cheaper], {a} or {b}?",
        "Which item [costs|cost] less[:|,] {a} or {b}?",
        "[Between|Of] {a} and {b}, which [costs less|is cheaper]?",
        "What is cheaper, {a} or {b}?",
    ),
    "larger_dated": (
        "Which {thing} [has|had|shows] the [larger|higher|greater] [value|{measure}]{group}[:|,] {a} or {b}?",
        "In which {thing} [is|was] the [value|{measure}] [larger|higher]{group}, {a} or {b}?",
        "Was the [value|{measure}] [larger|higher] in {a} or in {b}{group}?",
    ),
    "smaller_dated": (
        "Which {thing} [has|had|shows] the [smaller|lower] [value|{measure}]{group}[:|,] {a} or {b}?",
        "In which {thing} [is|was] the [value|{measure}] [smaller|lower]{group}, {a} or {b}?",
        "Was the [value|{measure}] [smaller|lower] in {a} or in {b}{group}?",
    ),
    # -- numbers worked out from two or more
    "difference": (
        "What is the difference between {a} and {b}{group}?",
        "What is the difference [in|of] {measure} between {a} and {b}{group}?",
        "What is the difference between the [values|figures] of {a} and {b}{group}?",
        "[How much|By how much] [do|did] {a} and {b} differ{group}?",
        "How [far|much] [are|were] {a} and {b} apart{group}?",
        "How [large|big|great] is the [gap|difference] between {a} and {b}{group}?",
        "[Calculate|Find|Work out] the difference between {a} and {b}{group}.",
    ),
    "difference_dated": (
        "What is the difference between the [values|figures] [of|for|in] {a} and {b}{group}?",
        "What is the difference [in|of] {measure} between {a} and {b}{group}?",
        "By how much [do|did] the values of {a} and {b} differ{group}?",
        "[Calculate|Find|Work out] the difference between the values in {a} and {b}{group}.",
    ),
    "sum_dated": (
        "What is the [sum|total] of the [values|figures] [of|for|in] {a} and {b}{group}?",
        "How much are the values of {a} and {b} [together|in total|combined]{group}?",
        "What is the combined [value|{measure}] of {a} and {b}{group}?",
        "What do the values of {a} and {b} add up to{group}?",
    ),
    "average_dated": (
        "What is the [average|mean] of the [values|figures] [of|for|in] {a} and {b}{group}?",
        "What is the [average|mean] [value|{measure}] of {a} and {b}{group}?",
    ),
    "ratio_dated": (
        "What is the ratio of the [value|figure|{measure}] [of|in] {a} to that [of|in] {b}{group}?",
        "How many times the value of {b} is that of {a}{group}?",
        "What is the value of {a} divided by that of {b}{group}?",
    ),
    "range": (
        "What is the difference between the highest and the lowest value{group}?",
        "What is the difference between the [largest|maximum|highest] and [smallest|minimum|lowest] value{group}?",
        "By how much does the [highest|largest] value exceed the [lowest|smallest]{group}?",
        "How [large|big] is the gap between the [highest and lowest|largest and smallest] values{group}?",
        "[Calculate|What is] the range of the values{group}?",
    ),
    "sum": (
        "What is the sum of {a} and {b}{group}?",
        "What is the [total|sum] of the [values|figures] of {a} and {b}{group}?",
        "How much are {a} and {b} [together|in total|taken together|combined]{group}?",
        "What do {a} and {b} [add up to|make together|come to]{group}?",
        "[Add|Sum up] {a} and {b}{group}.",
        "What is the combined [value|{measure}] of {a} and {b}{group}?",
    ),
    "ratio": (
        "What is the ratio [of|between] {a} [to|and] {b}{group}?",
        "How many times [as large as {b} is {a}|larger is {a} than {b}]{group}?",
        "What is {a} divided by {b}{group}?",
        "What is the ratio of the value of {a} to that of {b}{group}?",
        "How many times the value of {b} is that of {a}{group}?",
    ),
    "average": (
        "What is the [average|mean] of {a} and {b}{group}?",
        "What is the [average|mean] [value|{measure}] of {a} and {b}{group}?",
        "[Calculate|Find|Work out] the [average|mean] of {a} and {b}{group}.",
        "How much are {a} and {b} on average{group}?",
    ),
    "average_all": (
        "What is the [average|mean] of all [the |][values|{shapes}]{group}?",
        "What is the [average|mean] [value|{measure}]{group}?",
        "[Calculate|Find] the [average|mean] of all values{group}.",
        "How large is the average {measure}{group}?",
    ),
    "sum_all": (
        "What is the sum of all [the |][values|{shapes}]{group}?",
        "What do all [values|{shapes}] add up to{group}?",
        "[Calculate|Find] the sum of all values{group}.",
        "How much are all {things} together{group}?",
    ),
    "median": (
        "What is the median [value|of the values|of all values]{group}?",
        "[Which|What] value is the median{group}?",
        "What is the median of all the {shapes}{group}?",
        "Which value is in the middle [by size|when sorted]{group}?",
    ),
    # -- order
    "earlier": (
        "Which is [listed|named|mentioned|written] first, {a} or {b}?",
        "Which [stands|is] [higher|further up] on the page, {a} or {b}?",
        "Which [is listed|stands] [above|before] the other: {a} or {b}?",
        "Which of the two is listed first[:|,] {a} or {b}?",
    ),
    "later": (
        "Which is [listed|named|mentioned|written] [last|later], {a} or {b}?",
        "Which [stands|is] [lower|further down] on the page, {a} or {b}?",
        "Which [is listed|stands] [below|after] the other: {a} or {b}?",
        "Which of the two is listed later[:|,] {a} or {b}?",
    ),
    # -- counts
    "how_many": (
        "How many {things} [are there|are shown|are listed|are given|do you see]?",
        "How many {things} [are|can be seen] [in|on] the [{doc}|page]?",
        "How many {things} does the {doc} [have|show|list|contain]?",
        "What is the number of {things}[| shown| listed| in the {doc}]?",
        "[Count|Number] of {things}?",
        "Count the {things}.",
    ),
    "how_many_under": (
        "How many {things} [are there|are listed|are given|stand] [under|for|below] '{text}'?",
        "How many {things} does '{text}' have?",
        "What is the number of {things} [under|for] {text}?",
        "How many {things} [follow|belong to] '{text}'?",
    ),
    "count_above": (
        f"How many {{things}} [have a value|are] [above|over|{_MORE} than] {{limit}}{{group}}?",
        "How many {shapes} are [above|higher than|over|greater than] {limit}{group}?",
        "In how many {things} is the value [above|over|higher than] {limit}{group}?",
        "What is the number of {things} with more than {limit}{group}?",
        "How many {things} exceed {limit}{group}?",
    ),
    "count_under": (
        f"How many {{things}} [have a value|are] [below|under|{_LESS} than] {{limit}}{{group}}?",
        "How many {shapes} are [below|lower than|under|less than] {limit}{group}?",
        "In how many {things} is the value [below|under|lower than] {limit}{group}?",
        "What is the number of {things} with less than {limit}{group}?",
    ),
    "count_above_bill": (
        "How many items [cost|are] more than {limit}?",
        "How many [items|articles] are [dearer|more expensive] than {limit}?",
        "How many items have [a price|an amount] [above|over] {limit}?",
        "What is the number of items [over|above] {limit}?",
    ),
    "count_under_bill": (
        "How many items [cost|are] less than {limit}?",
        "How many [items|articles] are cheaper than {limit}?",
        "How many items have [a price|an amount] [below|under] {limit}?",
        "What is the number of items [below|under] {limit}?",
    ),
    "times": (
        "How [often|many times] does the word '{text}' [occur|appear|stand] [on the page|in the {doc}|here]?",
        "How many times is '{text}' [written|mentioned|used]?",
        "How often is the word {text} [used|mentioned]?",
        "[Count|What is the number of] occurrences of '{text}'?",
        "In how many places does the word '{text}' [stand|occur]?",
    ),
    # -- yes or no
    "is_larger": (
        f"Is {{a}} {_MORE} than {{b}}{{group}}?",
        f"Is the [value|{{measure}}] of {{a}} {_MORE} than [{{b}}|that of {{b}}]{{group}}?",
        "Does {a} have a [higher|larger] [value|{measure}] than {b}{group}?",
        "Does {a} exceed {b}{group}?",
    ),
    "is_smaller": (
        f"Is {{a}} {_LESS} than {{b}}{{group}}?",
        f"Is the [value|{{measure}}] of {{a}} {_LESS} than [{{b}}|that of {{b}}]{{group}}?",
        "Does {a} have a [lower|smaller] [value|{measure}] than {b}{group}?",
        "Does {a} stay below {b}{group}?",
    ),
    "is_larger_dated": (
        f"[Is|Was] the [value|{{measure}}] [of|in] {{a}} {_MORE} than [that of|in] {{b}}{{group}}?",
        "Does {a} have a [higher|larger] [value|{measure}] than {b}{group}?",
    ),
    "is_smaller_dated": (
        f"[Is|Was] the [value|{{measure}}] [of|in] {{a}} {_LESS} than [that of|in] {{b}}{{group}}?",
        "Does {a} have a [lower|smaller] [value|{measure}] than {b}{group}?",
    ),
    "is_above_dated": (
        f"[Is|Was] the [value|{{measure}}] [of|for|in] {{a}} {_MORE} than {{limit}}{{group}}?",
        "Does the value [of|for] {a} exceed {limit}{group}?",
    ),
    "is_under_dated": (
        f"[Is|Was] the [value|{{measure}}] [of|for|in] {{a}} {_LESS} than {{limit}}{{group}}?",
        "Does the value [of|for] {a} stay below {limit}{group}?",
    ),
    "is_larger_bill": (
        "Is {a} [more expensive|dearer] than {b}?",
        "Does {a} cost more than {b}?",
        "Did {a} cost more than {b}?",
        "Was more [paid|spent] [for|on] {a} than [for|on] {b}?",
    ),
    "is_smaller_bill": (
        "Is {a} [cheaper|less expensive] than {b}?",
        "[Does|Did] {a} cost less than {b}?",
        "Was less [paid|spent] [for|on] {a} than [for|on] {b}?",
    ),
    "is_above": (
        f"Is the [value|{{measure}}] of {{a}} {_MORE} than {{limit}}{{group}}?",
        f"Is {{a}} [above|over|{_MORE} than] {{limit}}{{group}}?",
        "Does {a} [exceed|have more than] {limit}{group}?",
    ),
    "is_under": (
        f"Is the [value|{{measure}}] of {{a}} {_LESS} than {{limit}}{{group}}?",
        f"Is {{a}} [below|under|{_LESS} than] {{limit}}{{group}}?",
        "Does {a} [have less than|stay below] {limit}{group}?",
    ),
    "total_above": (
        f"Is the [total|sum|bill|amount payable] [{_MORE} than|over|above] {{limit}}?",
        "Does the [total|{doc}] [exceed|come to more than] {limit}?",
        "Is more than {limit} to be paid in all?",
    ),
    "total_under": (
        f"Is the [total|sum|bill|amount payable] [{_LESS} than|under|below] {{limit}}?",
        "Does the [total|{doc}] come to less than {limit}?",
        "Is less than {limit} to be paid in all?",
    ),
    "in_cash": (
        "Was [it|this|the bill] paid [in|with] cash?",
        "Did the customer pay [in|with] cash?",
        "Is this a cash [payment|sale]?",
        "Was cash used[| to pay]?",
    ),
    "by_card": (
        "Was [it|this|the bill] paid [by|with a] [card|credit card]?",
        "Did the customer pay [by|with a] [card|credit card]?",
        "Was a [card|credit card] used[| to pay]?",
    ),
    "is_before": (
        "Is {a} [listed|named|written] [before|above|ahead of] {b}?",
        "Does {a} [stand|come] [above|before] {b} on the page?",
        "Is {a} [written above|printed above|higher up on the page than] {b}?",
    ),
    "is_marked": (
        "Is [{text}|'{text}'] [checked|ticked|marked|selected|chosen] [for|at|under] {key}?",
        "Is the [box|option] [{text}|'{text}'] [at|of|under] {key} [checked|ticked|marked|crossed]?",
        "Has [{text}|'{text}'] been [chosen|ticked|selected] for {key}?",
    ),
    "is_filled": (
        "Is the field [{key}|'{key}'] [filled in|filled out|completed]?",
        "Is [something|anything|a value] [given|entered|written] [for|at|in the field] [{key}|'{key}']?",
        "Does the field '{key}' have [a value|an entry]?",
        "Has {key} been filled in?",
    ),
    "is_value": (
        "Is the {low} {value}?",
        "Is {value} the {low}?",
        "Does the {doc} [give|name|state] {value} as the {low}?",
        "Is it [true|right|correct] that the {low} is {value}?",
        "Is [{value}|'{value}'] [given|written|entered] [for|at|as] {key}?",
        "Does '{key}' [say|read] [{value}|'{value}']?",
    ),
    "is_named": (
        "Is the {key} {value}?",
        "Is {value} the {key}?",
        "Does the {doc} [give|name|state] {value} as the {key}?",
        "Is it [true|right|correct] that the {key} is {value}?",
        "Is [{value}|'{value}'] given as the {key}?",
    ),
    "has": (
        "Is there {text} [on the page|in the {doc}|on this {doc}|here]?",
        "Does the {doc} [have|give|show|include|contain] {text}?",
        "Is {text} [given|shown|to be found][| on the page]?",
        "[Can|Do] you see {text}[| here]?",
    ),
    "has_field": (
        "Is there a [field|label|line] '{key}'[| on the {doc}| on the page]?",
        "Does the {doc} have a [field|label|line] [called |named |]'{key}'?",
        "Does the {doc} ask for [{low}|the {low}]?",
        "Is [{key}|'{key}'] one of the [fields|labels]?",
    ),
    "mentions": (
        "Does the [{doc}|page|text] [mention|name|say|contain] [{text}|'{text}']?",
        "Is [{text}|'{text}'] [mentioned|named|written|to be read] [on the page|in the {doc}|here|anywhere]?",
        "Does [{text}|'{text}'] [appear|occur|stand] [on the page|in the {doc}|in the text]?",
        "Do you [see|read|find] [{text}|'{text}'] [anywhere|here|on the page]?",
    ),
}  # fmt: skip
