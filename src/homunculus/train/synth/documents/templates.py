"""The ways in which questions are put: `[a|b]` stands for one of several wordings, `{slot}` for a text of the page."""

_ON = "[|| in the {doc}| in this {doc}| on the page| in the given {doc}| here]"
_SAYS = "[|| mentioned| given| written| shown| provided| specified| listed]"
_WHAT = "[What is|what is|What's|Tell me|What is|what was|Give|State]"

TEMPLATES: dict[str, tuple[str, ...]] = {
    "field": (
        "What is the value of the field '{key}'?",
        "What is the value of the field '{key}'?",
        "What is the {key}?",
        "what is the {low}?",
        f"What is the {{low}}{_SAYS}{_ON}?",
        f"{_WHAT} the {{low}}{_SAYS}{_ON}?",
        f"{_WHAT} the [value of|entry for|text for|information for] {{key}}{_ON}?",
        "{key}?",
        "{low}?",
        "What {low} is [given|mentioned|stated|written|entered]?",
        "What [does the {doc} say|is written|is entered|is filled in|is mentioned|is given] for {key}?",
        "What is [mentioned|written|filled in|typed|noted] [next to|against|under|at|beside|in the field] '{key}'?",
        'What is the "{key}"?',
        "what is the '{low}' [mentioned|given|written]?",
        "Which {low} is [mentioned|given|noted|stated]?",
        "What does the field {key} [contain|hold|show|say]?",
        "Mention the {low}[| given| specified].",
        "{key} [is what|has which value|says what]?",
        "[Find|Read|Get] the {low}[| in the {doc}| of this {doc}].",
    ),
    "search": (
        "{text}",
        "{text}",
        "{low}",
        "Find: {text}",
        "[Find|Locate|Show me|Point to|Look for|Search for] '{text}'",
        "[Find|Locate|Show|Look for] {text}",
        "Where does it say '{text}'?",
        'Where does it say "{text}"?',
        "Where is '{text}' [written|printed|mentioned|on the page|found]?",
        "Where does '{text}' [appear|stand|occur]?",
        "Where is {text}[| on the page| in the {doc}| written]?",
        "Where [can I find|do you see|do you read] {text}?",
        "Which [part|place] of the [page|{doc}] [says|reads|mentions] '{text}'?",
        "In which [line|place] is {text} mentioned?",
        "the [words|text|phrase] '{text}'",
    ),
    "search_line": (
        "{text}", "Find the line '{text}'", "Find: {text}", "Where does it say '{text}'?",
        "Which line [reads|says] '{text}'?", "[Locate|Show me] the line: {text}",
    ),
    "starts": (
        "What does the line [that starts|starting|beginning] with '{text}' say?",
        "Read the line [that starts with|beginning with|with] '{text}'",
        "Which line [starts|begins] with {text}?",
        "What is the [full|whole|complete] line [with|containing] '{text}'?",
    ),
    "right": (
        "What is the word [right of|after|following|to the right of|next to] [{text}|'{text}']?",
        "Which word [follows|comes after|is to the right of|stands right of] '{text}'?",
        "What [comes|is written|stands] [after|right after|to the right of] {text}?",
    ),
    "before": (
        "What is the word [left of|before|to the left of] [{text}|'{text}']?",
        "Which word [precedes|comes before|is to the left of|stands left of] '{text}'?",
        "What [comes|is written|stands] [before|left of|just before] {text}?",
    ),
    "below": (
        "What is [below|under|beneath|written below|printed under|directly below] [{text}|'{text}']?",
        "[What|Which text] [comes|stands|is] [just|right|directly] [below|under] '{text}'?",
        "What is the text below {text}?",
    ),
    "above": (
        "What is [above|over|written above|printed above|directly above] [{text}|'{text}']?",
        "[What|Which text] [comes|stands|is] [just|right|directly] above '{text}'?",
        "What is the text above {text}?",
    ),
    "top": (
        "What is [written|printed|the text|mentioned] at the [top|very top|top of the page|top of the {doc}]?",
        "[What|Which text] is [in the header|at the head of the page]?",
        "What is the text in the header?",
    ),
    "bottom": (
        "What is [written|printed|the text|mentioned] at the [bottom|very bottom|bottom of the page|end of the {doc}]?",
        "What is the text in the footer[| of the page]?",
    ),
    "first_line": (
        "What is the first line[| of the page| of the {doc}]?", "Which [line|text] comes first?",
        "What [does the first line say|stands in the first line]?", "How does the {doc} begin?",
    ),
    "last_line": (
        "What is the last line[| of the page| of the {doc}]?", "Which [line|text] comes last?",
        "What [does the last line say|stands in the last line]?", "How does the {doc} end?",
    ),
    "corner": (
        "What is [written|printed|the text|mentioned|given] [at|on|in] the {place}[| corner| of the page| side]?",
        "What is the text [at|on|in] the {place} [corner|of the page|of the {doc}|corner of the page]?",
        "What [does it say|can be read|stands|is] [at|in] the {place}[| corner]?",
    ),
    "largest": (
        "What is [written|printed] in the [largest|biggest] [letters|font|type|text]?",
        "What is the [largest|biggest] text[| on the page]?",
    ),
    "title": (
        "What is the [title|heading|main heading|title of the document|title of the page|heading of the {doc}]?",
        f"{_WHAT} the [title|heading] [of|given in|mentioned in|at the top of] [the|this] [{{doc}}|page]?",
        "what is the Title ?",
        "How is the {doc} [titled|headed]?",
        "What is the [document|page|{doc}] [about|called]?",
    ),
    "section": (
        "What is the [heading|title|name] of [section|point|part] {n}?",
        "What is the heading numbered {n}?",
        "What is the title of section {n}[| in the {doc}]?",
        "Section {n} is [about what|headed how|called what]?",
    ),
    "nth_heading": (
        "What is the {nth} [heading|sub heading|subheading|section heading|section title]?",
        "Which [heading|section] [comes|is] {nth}?",
    ),
    "nth_line": (
        "What is the {nth} line[| of the {doc}| from the top]?",
        "What is written in the {nth} line?",
        "Which [text|line] [comes|is] {nth}?",
    ),
    "company": (
        "What is the name of the [company|organization|organisation|firm|company in the letterhead]?",
        "Which [company|organization]'s letterhead is [this|used|it]?",
        "What is the [company name|letterhead|name in the letterhead|company mentioned at the top]?",
        "which company is mentioned[| in the {doc}| at the top]?",
        "Name of the company?",
    ),
    "page": (
        "What is the page number[| at the bottom| given at the bottom| of the page| mentioned]?",
        "what is the page number[| at the bottom of the page| on this page| in this document]?",
        "Which page is this?",
        "What is the number [at the bottom|written at the bottom|of the page]?",
        "page no?",
    ),
    "page_top": (
        "What is the page number[| at the top| given at the top| of the page| mentioned]?",
        "Which page is this?", "What is the number at the top[| of the page]?", "page no?",
    ),
    "bates": (
        "What is the number [printed|written|stamped|given] [at|on|in] the {place}[| end| corner| of the page]?",
        "What is the [long|stamped|bates|document] number[| at the {place}]?",
    ),
    "stamp": (
        "What [does the stamp say|is stamped|is written in the stamp|is the text of the stamp]?",
        "What is [stamped|in the stamp|in the frame] [on|of] the [page|{doc}]?",
    ),
    "stamp_date": (
        "What is the date stamped on the [{doc}|page]?", "[Which|What] date is [stamped|in the stamp|on the stamp]?",
    ),
    "date": (
        "What is the date [mentioned|given|written|] [in|on|of] [this|the] {doc}?",
        "When was this [written|dated|issued|sent]?",
        "When [was|is] the {doc} [dated|written|sent]?",
        "What is the date[| on the {doc}| of the {doc}| given| mentioned at the top]?",
        "date of the {doc}?",
        "On which date was the {doc} written?",
    ),
    "addressee": (
        "To whom is the [letter|{doc}] [addressed|written|sent]?",
        "Who is [the letter|it|this {doc}] addressed to?",
        "Who is the [addressee|recipient|receiver][| of the letter| of the {doc}]?",
        "Who [received|gets] the {doc}?",
        "to whom is this letter addressed to?",
    ),
    "salutation": (
        "How [is the addressee greeted|does the letter begin|does the letter start]?",
        "What is the [salutation|greeting][| of the letter| used]?",
    ),
    "signer": (
        "Who [signed|has signed|wrote|is the writer of|is the author of|sent] [this|the] [letter|{doc}]?",
        "By whom is the [letter|{doc}] [signed|written]?",
        "Whose [name|signature] is [at the end|given at the bottom|below the text]?",
        "Who is the sender[| of the letter| of the {doc}]?",
        "From whom is the {doc}?",
    ),
    "designation": (
        "What is the [designation|title|position|job title|post] of {name}?",
        "what is the [designation|position] of [{name}|the sender|the signer] ?",
        "What is {name}'s [position|designation|title|job]?",
        "Who is {name}?",
    ),
    "holder": (
        "Who is the {job}?",
        "What is the name of the {job}?",
        "Name the {job}[|.| mentioned]",
        "who [works as|acts as|is] {job}?",
    ),
    "closing": (
        "What is the [closing|complimentary close|closing phrase][| of the letter| used]?",
        "How does the letter [close|end]?",
    ),
    "address": (
        "What is the [address|postal address|mailing address|full address] of {whom}?",
        "Where is {whom} [located|based]?",
        "[What|Which] address is given for {whom}?",
    ),
    "street": (
        "What is the street[| address| name] of {whom}?", "[In|On] which street is {whom}?",
        "[Which|What] street is [mentioned|given]?",
    ),
    "city": (
        "[In which|Which] city is {whom}[| in| located in]?",
        "What is the [city|place|town] of {whom}?",
        "[Which|What] city [is mentioned|is given] in the address[| of {whom}]?",
    ),
    "state": (
        "[Which|What] state is {whom} in?", "What is the state [of {whom}|noted|mentioned in the address|given]?",
        "[In which state is {whom} located|Which state does the address name]?",
    ),
    "zip": ("What is the [zip code|zipcode|postal code|pin code|zip] [of {whom}|mentioned|in the address]?",),
    "cc": (
        "Who is copied[| on the {doc}| in]?", "To whom [are copies|is a copy] sent?", "Who [gets|receives] a copy?",
        "Who is [in cc|mentioned in cc]?",
    ),
    "initials": (
        "What are the [typist's|reference|typist] initials[| given]?",
        "[Which|What] initials [are given|stand at the end]?",
    ),
    "enclosure": (
        "What is [enclosed|attached|sent along][| with the letter]?", "[Which|What] enclosure is [mentioned|listed]?",
    ),
    "motto": (
        "What is the [slogan|motto|tagline|line below the company name][| of the company]?",
        "What [slogan|motto] does the company use?",
    ),
    "author": ("Who [wrote|is the author of] the [article|{doc}|paper]?", "Who is the author?", "Name the author."),
    "caption": (
        "What is the [caption|title] of [the figure|Figure {n}|figure {n}]?",
        "What [does [Figure|figure] {n} show|is shown in figure {n}]?",
    ),
    "list_n": (
        "What is [point|item|number|entry] [number |no. |]{n}[| in the list| on the list| in the {doc}]?",
        "Which item has number {n}?",
        "What is listed [as|under] number {n}?",
    ),
    "list_first": (
        "What is the first [item|point|entry] [in|of|on] the list?",
        "Which [item|point|entry] [comes|is listed|is] first?", "What is mentioned first[| in the list]?",
    ),
    "list_last": (
        "What is the last [item|point|entry] [in|of|on] the list?",
        "Which [item|point|entry] [comes|is listed|is] last?", "What is the last point[| mentioned]?",
    ),
    "list_page": (
        "On [which|what] page is {item}?", "What is the page number [of|for] {item}?",
        "[Which|What] page does {item} [start|begin] on?",
    ),
    "list_time": (
        "[At what time|When] is {item}[| scheduled]?",
        "What is the time [for|of] {item}?",
        "What time [is|does] {item}[| scheduled| start]?",
    ),
    "list_what": (
        "What is [scheduled|planned|the event|on the agenda] at {time}?",
        "What [happens|takes place|starts|is listed] at {time}?",
    ),
    "list_who": (
        "Who is [responsible for|in charge of|presenting|the speaker of] {item}?", "By whom is {item}?",
        "Who [presents|leads|gives] {item}?",
    ),
    "cell": (
        "What is the {column} of {row}?",
        "What is the {column} for {row}?",
        "what is the {column} of {row}?",
        "What is the value of {row} in {column}?",
        "How much is {row} for {column}?",
        "What is the value [of|for|mentioned for] '{row}' [under|in the column|in] '{column}'?",
        "What is the {row} [in|for] {column}?",
        "{row}, {column}?",
        "What does the table [show|give|say] for {row} under {column}?",
        "[For|In case of] {row}, what is the {column}?",
        'What is the "{column}" for "{row}"?',
    ),
    "column": (
        "What is the [heading|header|title] of the {nth} column?",
        "What is the {nth} column [heading|header|of the table]?", "Which heading [is|stands] over the {nth} column?",
    ),
    "row": (
        "What is the {nth} [row|entry|row label] [of|in] the table?", "Which [entry|row] is {nth} in the table?",
        "What is listed in the {nth} row?",
    ),
    "which_row": (
        "[Which|What] {label} has [a|the] {column} of {value}?", "For which {label} is the {column} {value}?",
        "Which {label} has {value} [under|in|for] {column}?",
    ),
    "total_cell": (
        "What is the total {column}?", "What is the total [of|for|in] {column}?",
        "How much is the total [{column}|of {column}|under {column}]?", "what is the grand total of {column}?",
    ),
    "table_title": (
        "What is the [title|heading|caption|name] of the table?", "What [does the table show|is the table about]?",
        "[How|In what way] is the table titled?",
    ),
    "unit": (
        "In [what|which] unit are the [values|figures|amounts]?",
        "What is the unit [of the values|used|in the table]?",
    ),
    "note": (
        "What does the [note|footnote][| below the table] say?",
        "What is [the note below the table|written in the note|noted below|the footnote]?",
    ),
    "source": (
        "What is the source[| of the data| given| mentioned]?",
        "Where does the data come from?",
        "What source is [given|mentioned|cited][| below the chart]?",
    ),
    "chart_value": (
        "What is the value [of|for] {category}?",
        "What was the {measure} [of|for|in] {category}?",
        "How much is {category}?",
        "What is the {measure} in {category}?",
        "what value [does {category} have|is shown for {category}]?",
        "{category}?",
        "How [high|large|big] is the [value|bar|share] [of|for] {category}?",
    ),
    "chart_series": (
        "What is the value of {series} in {category}?", "What was the {series} [of|for|in] {category}?",
        "How much is {series} for {category}?", "What is the {series} value [for|in] {category}?",
        "[For|In] {category}, how much is {series}?",
    ),
    "with_value": (
        "[Which|What] {thing} has [the value|a value of] {value}?",
        "[Which|What] {thing} [shows|is at|stands at|has] {value}?",
    ),
    "x_axis": (
        "What is [plotted|shown|measured|represented] [on|along] the [x-axis|X axis|x axis|horizontal axis]?",
        "What is the [title|label|name] of the [x-axis|X axis|horizontal axis]?",
        "What is the [x-axis|x axis|horizontal axis] called?",
    ),
    "y_axis": (
        "What is [plotted|shown|measured|represented] [on|along] the [y-axis|Y axis|y axis|vertical axis]?",
        "What is the [title|label|name] of the [y-axis|Y axis|vertical axis]?",
        "What is the [y-axis|y axis|vertical axis] called?",
    ),
    "axis_end": (
        "What is the [highest|largest|maximum] value [on|shown on|of] the [{axis} axis|{axis}-axis]?",
        "What is the last [tick|value|number] [on|of] the {axis} axis?",
    ),
    "axis_start": (
        "What is the [lowest|smallest|first] value [on|shown on|of] the [{axis} axis|{axis}-axis]?",
        "Where does the {axis} axis [start|begin]?",
    ),
    "legend": (
        "What is the {nth} [entry|item|name] in the legend?",
        "What does the {nth} [legend entry|colour in the legend|symbol] [stand for|represent|show]?",
    ),
    "chart_title": (
        "What is the [title|heading|name] of the [chart|graph|figure|plot]?",
        "What does the [chart|graph|figure] [show|represent|depict]?",
        "What is [the chart|this graph|the figure] about?",
    ),
    "nth_category": (
        "What is the {nth} {thing}[| on the axis| from the left| in the chart]?",
        "[Which|What] {thing} [comes|is shown] {nth}?",
    ),
    "receipt_company": (
        "What is the name of the company on this receipt?",
        "What is the name of the company on this receipt?",
        "What is the [name of the shop|store name|shop name|name of the store|company name|merchant]?",
        "[Which|What] [shop|store|company] [issued|gave|is] this receipt[| from]?",
        "Where was this [bought|purchased]?",
        "Who [is the seller|issued the {doc}|is the merchant]?",
    ),
    "receipt_date": (
        "What is the date on this receipt?",
        "What is the date on this receipt?",
        "What is the date [on|of|in] the receipt?",
        "When was [this bought|the purchase made|the receipt issued|it paid]?",
        "What is the [date|purchase date|transaction date|bill date]?",
        "what is the date in the receipt?",
    ),
    "receipt_address": (
        "What is the address of the company on this receipt?",
        "What is the address of the company on this receipt?",
        "Where is the [shop|store|company] [located|]?",
        "What is the address [of the shop|of the store|given|on the receipt]?",
        "What is the [shop's|store's|company's] address?",
    ),
    "receipt_total": (
        "What is the total amount on this receipt?",
        "What is the total amount on this receipt?",
        "What is the [total|total amount|grand total|amount payable|total bill|bill amount]?",
        "How much [is the total|was paid in total|is to be paid|does it all cost|is the bill]?",
        "What is the total [of|on] the receipt?",
    ),
    "item_price": (
        "What is the [price|amount|cost] of {item}?",
        "How much [is|does|was] {item}[| cost]?",
        "How much was [paid|charged] for {item}?",
        "{item} [costs how much|price]?",
    ),
    "item_qty": (
        "What is the quantity of {item}?", "How many {item} [were bought|are there|were ordered]?",
        "What is the qty [of|for] {item}?", "How many pieces of {item} [were bought|are listed]?",
    ),
    "item_unit": (
        "What is the [unit price|single price] of {item}?",
        "What is the [rate|price per unit|unit price] [of|for] {item}?",
        "How much is one {item}?",
    ),
    "item_nth": (
        "What is the {nth} item[| on the {doc}| bought| listed]?", "[Which|What] item [comes|is listed] {nth}?",
    ),
    "item_code": (
        "What is the [code|item code|item number|number] [of|for] {item}?", "[Which|What] code does {item} have?",
    ),
    "item_with": (
        "[Which|What] item [costs|is|cost] {value}?", "What [costs|was bought for] {value}?",
        "For [which|what] item is the amount {value}?", "[Which|What] item has [a price|an amount] of {value}?",
    ),
    "checked": (
        "Which [box|option] is [checked|ticked|marked|crossed][| for {key}]?",
        "What is [checked|ticked|marked][| for {key}| at {key}]?",
        "Which option is [selected|chosen] [for|under] {key}?",
    ),
    "where_event": ("Where [is|will] [it|the event] [be held|take place]?", "What is the venue?"),
    "price": (
        "What is the price?", "How much [does it cost|is {item}]?",
        "What is the [price|cost|amount] [shown|given|asked]?",
    ),
    "sign": (
        "What does the [sign|board|notice|label|plate] say?",
        "What is written on the [sign|board|label]?",
        "What is the [main|large] text?",
    ),
    "phone": (
        "What is the [phone|telephone|contact|phone] number[| given| mentioned| on the {doc}]?",
        "Which number [should I|can you|to] call?",
        "what is the phone no[| mentioned]?",
        "tel?",
    ),
    "fax": ("What is the fax [number|no][| given| mentioned]?", "what is the fax no?", "fax number?"),
    "email": ("What is the [email|e-mail] [address|id][| given| mentioned]?", "what is the email id?", "email?"),
    "url": ("What is the [website|web site|url|web address|homepage][| given| mentioned]?", "Which website is given?"),
    "person": (
        "What is the name of the person[| on the {doc}| mentioned]?", "Whose [card|{doc}|name] is this?", "name?",
        "Who is [this|named on the {doc}]?",
    ),
}  # fmt: skip
