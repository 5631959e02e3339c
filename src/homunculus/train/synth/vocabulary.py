"""A small vocabulary of our own, and the little grammars that make titles, sentences and labels from any vocabulary.

Items are separated by `|` or by line ends. Names of people and firms are common ones put together at random.
"""

from __future__ import annotations

from random import Random


def items(text: str) -> list[str]:
    """The items of a multi-line string."""
    return [item.strip() for item in text.replace("\n", "|").split("|") if item.strip()]


FUNCTION = """the of and to a in is for that on with as was it by be are from at this have or not an which were but
has their its all one can will more when been other if so we they had no than may any only also into such these most
some time would there use our two new first each about out up over after between under during both your per"""

NOUNS = """account agency agreement amount analysis annual application approval area article average balance batch
bill board body book box branch brand budget building business capital card carton case cash cause center century
change charge chart check chemical child cigarette city claim class clerk client clinic code committee company
component compound condition contract control copy cost country county course court credit customer cycle damage data
date day deal decision delivery demand department design detail device diet discount disease display doctor document
dose draft drug effect effort energy engine equipment error estimate event evidence example exchange exercise expense
experiment export fact factor factory family farm fee field figure file filter finding firm flow food form formula
freight fuel function fund garden gas gift goal gram grant group growth half hand heart history home hospital hotel
hour house human image impact income increase index industry infant input insurance interest inventory invoice issue
item job journal label laboratory land law leaf letter level library license limit line list loan loss machine
magazine mail manager map margin market material matter meal measure media meeting member memo menu message method
milk minute model money month motor name nation nature need network news note notice number nurse object offer office
officer oil option order output owner package page panel paper part partner party patient pattern payment people
percent period permit person phone plan plant plate point policy population port position power practice premium
price print problem process product profit program project promotion property protein proposal public purchase
purpose quality quantity quarter question range rate ratio reader reason receipt record region report request
research reserve response result return revenue review risk road role room route rule safety salary sale sample scale
schedule school science season section sector series service sheet shift ship shop signal site size smoke society
soil source space staff stage standard state statement station status step stock store street strength student study
subject sugar summary supplier supply support surface survey system table target task tax team term test text theory
tobacco tool total town trade traffic trend trial truck trust type union unit user value vehicle volume wage
warehouse waste water week weight wheat word work worker year"""

VERBS = """accept achieve add adjust affect allow analyze apply approve arrange assess attach avoid calculate cancel
carry change check close collect compare complete confirm consider contain continue correct cover create decide
define deliver describe determine develop discuss distribute double enclose ensure enter establish estimate evaluate
examine expand expect explain extend file finish follow forward handle identify improve include increase indicate
inform inspect introduce issue join limit list maintain manage measure monitor move need note obtain offer open order
organize outline post prepare present prevent print process produce promote propose protect provide publish purchase
reach receive recommend record reduce reflect release remain remove repeat replace reply report represent request
require return reveal review revise save select serve sign solve specify start state store suggest supply support
test track treat update use verify visit wait"""

ADJECTIVES = """acceptable active actual additional adequate adult available average basic bright central certain
chemical chronic clean clear clinical cold commercial common complete complex constant corporate critical current
daily deep different digital direct double dry due early eastern economic effective efficient entire equal essential
exact extra fair fast final financial fine firm fixed flat foreign formal free frequent fresh full general global
good great gross hard heavy high important independent individual industrial initial internal joint key large late
legal light likely limited liquid local long low main major maximum medical mild minimum minor mobile modern monthly
national natural necessary net new normal northern official open optional original outstanding overall partial
particular permanent personal physical positive possible present previous primary prime private proper public quick
random rapid raw ready recent regional regular related relative reliable remote rich safe secondary senior separate
serious severe sharp short significant similar simple single small social soft solid southern special specific stable
standard steady strict strong subject successful suitable supplementary technical temporary thick thin total typical
unique urban urgent usual valid variable weekly western whole wide written young"""

ADVERBS = """accordingly again already also always annually carefully clearly closely completely currently daily
directly early easily especially frequently fully generally gradually highly immediately largely later locally mainly
monthly nearly normally often only originally partly possibly previously primarily probably promptly quickly rarely
recently regularly shortly significantly slightly slowly sometimes soon still strongly successfully together usually
weekly"""

FIRST = """James|Mary|John|Patricia|Robert|Linda|Michael|Barbara|William|Susan|David|Karen|Richard|Nancy|Joseph|Lisa
Thomas|Margaret|Charles|Sandra|Daniel|Ashley|Matthew|Donna|Anthony|Carol|Mark|Ruth|Donald|Sharon|Steven|Laura|Paul
Helen|Andrew|Anna|Kenneth|Pamela|George|Emma|Joshua|Rachel|Kevin|Janet|Brian|Maria|Edward|Diane|Ronald|Julie|Jason
Joyce|Frank|Alice|Scott|Teresa|Eric|Doris|Stephen|Gloria|Raymond|Evelyn|Gregory|Jean|Walter|Martha|Harold|Rose|Henry
Ingrid|Carl|Elena"""
LAST = """Smith|Johnson|Williams|Brown|Jones|Garcia|Miller|Davis|Martinez|Lopez|Wilson|Anderson|Thomas|Taylor|Moore
Jackson|Martin|Lee|Perez|Thompson|White|Harris|Clark|Lewis|Robinson|Walker|Young|Allen|King|Wright|Scott|Torres|Hill
Green|Adams|Nelson|Baker|Hall|Rivera|Campbell|Mitchell|Carter|Roberts|Phillips|Evans|Turner|Parker|Collins|Edwards
Stewart|Morris|Murphy|Cook|Rogers|Morgan|Cooper|Peterson|Reed|Bailey|Kelly|Howard|Ward|Cox|Richardson|Wood|Watson
Brooks|Bennett|Gray|Schmidt|Meyer|Rossi|Novak|Jensen|Dubois|O'Brien|McDonald|Van Dyke|Fitzgerald"""
EAST_LAST = """Tan|Lim|Lee|Ng|Wong|Ong|Goh|Chua|Chan|Koh|Teo|Ang|Yeo|Tay|Ho|Low|Sim|Chong|Chin|Liew|Foo|Yap|Lau|Cheah
Khoo|Wang|Li|Zhang|Liu|Chen|Yang|Huang|Zhao|Wu|Zhou|Xu|Sun|Ma|Zhu|Kim|Park|Choi|Nguyen|Tran|Pham"""
EAST_FIRST = """Wei Ming|Mei Ling|Kok Leong|Siew Hoon|Chee Keong|Woon Yann|Jia Hui|Boon Huat|Li Na|Xiao Hong|Kah Wai
Yi Xin|Hui Min|Swee Lian|Teck Seng|Zhi Wei|Pei Shan|Kian Hong|Soo Mei|Yong Sheng|Min Jun|Ji Woo|Van An|Thi Mai
Guo Qiang|Jun Jie"""
MALAY = """Ahmad|Mohd Faizal|Siti Aminah|Nurul Huda|Azman|Ismail|Rosli|Farah|Hafiz|Zainal|Aishah|Kamal|Norhayati
Razak|Salleh|Fatimah|Hassan|Ibrahim|Zulkifli|Yusof|Othman|Rahman|Halim|Latifah|Syed Omar|Noraini"""
INDIAN = """Rajesh|Priya|Suresh|Lakshmi|Anil|Deepa|Vijay|Kavitha|Ramesh|Meena|Arjun|Sunita|Muthu|Devi|Ganesan
Krishnan|Kumar|Sharma|Patel|Singh|Gupta|Reddy|Nair|Iyer|Menon|Pillai|Rao|Joshi|Mehta|Das"""

FIRM = """Acme|Allied|Alpha|American|Apex|Atlantic|Atlas|Beacon|Blue Ridge|Cascade|Central|Century|Continental
Crescent|Delta|Eagle|Eastern|Evergreen|Falcon|Federal|First|General|Global|Golden|Granite|Great Lakes|Harbor|Heritage
Highland|Horizon|Imperial|Keystone|Liberty|Lucky|Maple|Metro|Midland|National|New England|Northern|Oak|Oriental
Pacific|Pioneer|Premier|Prosper|Quality|Red Rock|Regal|River|Royal|Silver|Southern|Standard|Star|Summit|Sun|Superior
Trident|Union|United|Valley|Victory|Western|Yi Feng|Perniagaan|Kedai|Syarikat|Soon Huat|Guan Hong|Mr D.|99"""
TRADE = """Agencies|Associates|Bakery|Books|Broadcasting|Brothers|Cafe|Chemical|Construction|Consulting|Dairy
Electric|Electronics|Engineering|Enterprises|Express|Farms|Foods|Freight|Furniture|Hardware|Health|Industries
Instruments|Insurance|Laboratories|Leaf|Machinery|Manufacturing|Marketing|Media|Medical Center|Mills|Motors|Oil
Packaging|Paper|Pharmacy|Plastics|Printing|Products|Research|Restaurant|Services|Shipping|Stationery|Steel|Supply
Systems|Tobacco|Trading|Transport|Ventures"""
LEGAL = """Inc.|Inc|Co.|Company|Corp.|Corporation|Ltd.|Limited|LLC|L.P.|& Co.|& Sons|Group|Sdn Bhd|SDN. BHD.|GmbH
S.A.|PLC|Pte Ltd|(M) Sdn Bhd|Foundation|Partners|Bros."""

STREET = """Main|Oak|Maple|Park|Elm|Washington|Lake|Hill|Walnut|Spring|North|Ridge|Church|Center|Broad|Market|Union
Jefferson|Lincoln|Highland|River|Cedar|Pine|Sunset|Railroad|Mill|Franklin|Madison|Chestnut|Fifth|2nd|42nd|West End
Old Mill|Kennedy"""
STREET_END = """Street|St.|St|Avenue|Ave.|Ave|Road|Rd.|Drive|Dr.|Lane|Blvd.|Boulevard|Place|Court|Highway|Parkway|Way
Square"""
JALAN = """Jalan Sagu 18|Jalan Besar|Jalan Tun Razak|Jalan PJS 8/9|Jalan Kenari 5|Taman Daya|Taman Desa|Lorong Maarof
Jalan Permas 10|Jalan Bukit Bintang|Bandar Sunway|Taman Indah|Persiaran Raja|Jalan SS 2/24|Jalan Ampang|Lebuh Pantai"""
CITY = """New York|Chicago|Los Angeles|Boston|Philadelphia|Richmond|Louisville|Winston-Salem|Greensboro|Durham
Atlanta|Dallas|Houston|Denver|Seattle|Portland|San Francisco|Minneapolis|St. Louis|Cincinnati|Detroit|Cleveland
Pittsburgh|Baltimore|Washington|Miami|New Orleans|Kansas City|London|Paris|Berlin|Geneva|Zurich|Toronto|Montreal
Tokyo|Singapore|Kuala Lumpur|Johor Bahru|Petaling Jaya|Shah Alam|Penang|Klang|Ipoh|Melaka|Sydney|Bombay|New Delhi
Hong Kong|Manila|Jakarta|Bangkok"""
STATE = """NY|CA|TX|FL|VA|KY|NC|SC|GA|OH|IL|PA|NJ|MA|CT|MI|MN|WI|MO|TN|WA|OR|CO|AZ|New York|California|Texas|Virginia
Kentucky|North Carolina|Georgia|Ohio|Illinois|Pennsylvania|New Jersey|Massachusetts|Selangor|Johor|Perak|Pulau Pinang
Negeri Sembilan|Ontario|Quebec|Bavaria|Victoria|Maharashtra"""
COUNTRY = """United States|U.S.A.|USA|United Kingdom|Canada|Germany|France|Italy|Spain|Netherlands|Switzerland|Sweden
Norway|Denmark|Japan|China|India|Malaysia|Singapore|Indonesia|Thailand|Philippines|Australia|New Zealand|Brazil
Mexico|Argentina|Chile|Peru|Egypt|Nigeria|Kenya|South Africa|Turkey|Greece|Poland|Russia|Vietnam|South Korea
Saudi Arabia|Israel|Ireland"""

ARTICLE = """A4 paper|ball pen|battery|bath towel|bottle|bread|brush|butter|cable|candle|ceiling fan|cement|chair
cheese|chicken rice|chocolate|coffee|cookies|cream|cup|curry noodle|desk lamp|detergent|door handle|drill bit
envelope|eraser|extension cord|file folder|filter|fish ball|flour|fried rice|garbage bag|glass|glue stick|green tea
hammer|hand soap|ink cartridge|instant noodle|juice|key ring|knife|lamp|lemon tea|light bulb|marker pen|milk
mineral water|nail|napkin|notebook|oil filter|orange|paint|paper clip|pencil|pipe|plastic bag|plate|printer ribbon
roti canai|rubber band|ruler|salt|sand paper|scissors|screw|shampoo|shirt|soap|socket|spoon|stapler|sticker|sugar
tape|tee joint|tile|tissue|toothpaste|toner|towel|tray|umbrella|valve|washer|wire|yogurt|PVC pipe|wall plug|USB cable
hose clip|spring roll"""
GRADE = """small|large|medium|extra|premium|classic|fresh|white|black|red|blue|green|yellow|mini|jumbo|super|family
soft|hot|iced|organic|frozen|steel|plastic|wooden|heavy duty|double|assorted|refill|deluxe"""
SERVICE = """Consulting fee|Delivery charge|Service charge|Freight|Handling|Installation|Repair labor|Monthly rental
Parking|Photocopying|Postage|Printing|Room charge|Advertising space|Travel expense|Maintenance contract|Car wash
Oil change|Typing services|Laboratory analysis|Storage|Insurance premium|Subscription|Professional services|Telephone
Laundry"""
JOB = """Accountant|Manager|Director|Vice President|President|Secretary|Chairman|Engineer|Chemist|Analyst|Clerk
Cashier|Supervisor|Sales Representative|Buyer|Treasurer|Assistant|Technician|Nurse|Physician|Professor|Editor
Attorney|Consultant|Research Associate|Project Leader|Marketing Manager|Plant Manager|Product Manager|Controller
Coordinator|Operator|Driver"""
DEPARTMENT = """Accounting|Purchasing|Research|Marketing|Sales|Personnel|Human Resources|Engineering|Production
Quality Control|Legal|Finance|Shipping|Receiving|Maintenance|Public Affairs|Public Relations|Advertising|Analytical
Data Processing|Administration|Customer Service|Payroll|R&D|Radiology|Pediatrics|Nutrition|Internal Audit|Media
Security"""
UNIT = """mm|cm|m|km|in|in.|ft|ft.|yd|mg|g|kg|lb|lbs|oz|oz.|ml|mL|L|gal|cc|pcs|pc|pkt|ctn|doz|box|set|pair|unit|units
hr|hrs|min|sec|days|weeks|%|ppm|mg/g|mg/kg|kcal|cal|psi|V|kW|kWh|rpm|Hz|MHz|F|C|sq. ft.|tons|MT|mm.|mg/cigt|ug|copies
pages"""
MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"

KEYS = """Date|DATE|Date of birth|Date received|Date prepared|Date shipped|Date issued|Effective date|Expiration date
Due date|Invoice No.|Invoice Date|INVOICE NUMBER|P.O. Number|P.O. No.|Purchase Order|Order No.|Account No.|Acct. #
Customer ID|Job No.|Reference|Ref. No.|Your ref|Our ref|File No.|Document No|DOCUMENT NO.|Receipt #|Bill No|Table No
Check No.|Serial No.|Lot No.|Batch No.|Sample No.|Sample Size|Sample Type|Test No.|Project|PROJECT NO.|Project Title
Protocol|Code|Product Code|Part No.|Description|Quantity|Qty|QTY.|Unit Price|U/Price|Amount|AMOUNT|Disc|Discount
Subtotal|SUB-TOTAL|Sub Total|Tax|Sales Tax|GST|GST 6%|GST ID|GST Reg. No|SST|Service Charge|Rounding|Rounding Adj
TOTAL|Total|Grand Total|TOTAL DUE|Total Amount|Total Sales|Balance Due|Balance|Amount Paid|CASH|Cash|Change|CHANGE
Tendered|Payment|Payment terms|Terms|Net|Gross|Credit|Debit|VISA|Ship to|SHIP TO|Sold to|Bill to|Deliver to|Ship via
Shipped by|Carrier|F.O.B.|Weight|Net Wt.|Gross weight|Name|NAME|Full name|First name|Last name|Title|TITLE|Position
Company|COMPANY|Organization|Firm|Address|ADDRESS|Street|City|CITY|State|Zip|Zip Code|Country|Phone|PHONE|Telephone
TELEPHONE NO.|Tel|Tel No.|Mobile|Fax|FAX NO.|Fax Number|E-mail|Email|Website|Contact|Contact person|Attn|Attention
ATTN.|To|TO|From|FROM|cc|CC|Subject|SUBJECT|Re|RE|Memo|Message|Comments|COMMENTS|Remarks|Notes|Note|Purpose|Signature
SIGNATURE|Signed|Approved by|APPROVED BY|Prepared by|Requested by|REQUESTED BY|Reviewed by|Checked by|Received by
Authorized by|Issued by|Written by|Submitted by|Cashier|CASHIER|Operator|Salesperson|Sales Rep|Manager|Supervisor
Director|Department|DEPT.|Division|Branch|Region|Area|District|Territory|Location|Room|Floor|Building|Page|PAGE|Pages
No. of pages|NUMBER OF PAGES INCLUDING COVER SHEET|Copy to|Copies|Distribution|Time|TIME|Start date|End date
Starting date|Completed|Status|Brand|BRAND NAME|Brand(s)|Product|Type|TYPE|Size|Style|Color|Model|Grade|Class
Category|Item|ITEM NO.|Source|Origin|Age|Sex|Gender|Race|Height|Blood pressure|Diagnosis|Physician|Patient
Patient No.|Ward|Hospital|Social Security No.|SSN|Occupation|Education|Nationality|Marital status|Spouse|Dependents
Employer|Employee No.|Salary|Budget|BUDGET CODE|Cost|Estimated cost|Fee|Rate|Percent|% of total|Average|Mean|Range
Std. Dev.|N|Year|Month|Week|Period|Fiscal year|Quarter|Deadline|Circulation|Publication|Issue|Volume|Media|Space
Ad size|Closing date|Moisture|Nicotine|Tar|pH|Temperature|Pressure|Length|Width|Diameter|Circumference|Method
Procedure|Equipment|Supplier|Vendor|Manufacturer|Dealer|Retailer|Account|Bank|Card No.|Approval Code|Member|Points
Shift|Objective|Background|Conclusion|Recommendation|Results|Summary|Introduction|Agenda|Participants|Speaker|Session
Topic|Location|Yes|No|Other|OTHER|Explain|Specify|If yes|Reason|Action|Action required|Priority|Confidential
For office use only|Case No.|Court"""
KEY_OF = """Invoice|Order|Customer|Account|Sample|Product|Project|Contract|Shipment|Delivery|Payment|Vendor|Store
Item|Patient|Employee|Check|Claim|Policy|Test|Report|Request|Member|Job|Batch|Study|License|Vehicle|Study Director
Contact|Client|Agency"""
KEY_END = """No.|Number|No|#|Date|Name|Code|ID|Type|Total|Status|Address|Amount|Description|Title|Phone|Reference
Size|Period"""

TITLES = """Annual Report|Income Statement|Balance Sheet|Table of Contents|Purchase Order|Packing List|Tax Invoice
Cash Receipt|Expense Report|Weekly Time Sheet|Meeting Minutes|Interoffice Memorandum|Fax Cover Sheet
Telephone Directory|Progress Report|Research Proposal|Analysis of Variance|Bill of Lading|Request for Proposal
Project Summary|Application for Employment|Schedule of Expenses|Laboratory Report|Quality Improvement Form
Budget Request|Travel Authorization|Price List|Order Form|Statement of Account|Curriculum Vitae|Confidential Memo
Press Release|Product Specification|Market Survey|Official Receipt"""

SENTENCES = """the A N V3 the N of the N .|we have Ved the N and will V the A N D .
please V the A N before the N is Ved .|all Ns must be D Ved by the N of the A N .|the N of A Ns was D Ved in the N .
this N Vs3 that A Ns are D Ved with a N .|it is A to V the N when the N is A .
in order to V the N , the A N should V3b each N .|Ns and Ns were Ved from the N during the N .
no N may V the N without an N .|according to the N , the N Ved Y percent of all Ns .
there is no A N between the N and the A N .|a A N can V more than Y Ns in one N .
the N D Ved its A Ns , but the N was A .|as Ved above , A Ns of N V a A N .
if you have Ved your N , please V this N .|our N has D Ved the A N for the N Y .
each N is Ved to V the N and the A N .|attached is a N of the A N that was Ved on the N .
I would like to V the N of your A N .|Ving A Ns is a N of the N .|the total N of Ns Ved in the A N was Y .
they D V the N with A Ns , Ns and Ns .|by Ving the N , the N will V A Ns .|what is the N of Ving a A N ?
thank you for your N of the A N .|do not V the N unless the N is A !|the following Ns were Ved : N , A N and N .
both Ns V the A N of the N , which is D A .|N and N Vs3 must be Ved at the A N ."""

STEMS = """meth eth prop but pent hex hept oct benz phen tolu pyr fur nitr chlor brom acet form glyc sulf phosph cyan
nicot gluc"""
TAILS = "ane ene yne ol al one yl amide amine oxide ate ide ic-acid aldehyde ose ine idine oate"
SYLLABLES = """ve lo ra tri dex ka mo ni sol ar no va cor li ben to lux phi ro pan da max en qui zo ter vi al su mar
eco bel pro"""


def classes(words: list[str]) -> dict[str, list[str]]:
    """Words by part of speech: our own, and those of `words` whose ending gives them away."""
    sorted_words = {"N": NOUNS.split(), "V": VERBS.split(), "A": ADJECTIVES.split(), "D": ADVERBS.split()}
    endings = {
        "N": ("tion", "ment", "ness", "ance", "ship", "ture", "logy"),
        "A": ("able", "ical", "ious", "ful", "less", "istic"),
        "D": ("ally", "ously", "ively", "ently"),
        "V": ("ify", "ulate"),
    }
    for part, ends in endings.items():
        sorted_words[part] += [word for word in words if len(word) > 5 and word.endswith(ends)]
    return sorted_words


def inflected(word: str, ending: str) -> str:
    """A regular form of a word; our own verbs are all regular, and a few nouns that are not do no harm."""
    if word[-1] == "y" and word[-2] not in "aeou" and ending != "ing":
        return word[:-1] + {"s": "ies", "ed": "ied"}[ending]
    if ending == "s":
        return word + ("es" if word.endswith(("s", "sh", "ch", "x", "z")) else "s")
    return (word[:-1] if word.endswith("e") else word) + ending


def sentence(rng: Random, parts: dict[str, list[str]], pattern: str) -> str:
    """One sentence from a pattern of plain words, N noun, A adjective, D adverb, V verb, Y number, with endings."""
    words: list[str] = []
    for token in pattern.split():
        if token in ".,:?!":
            words[-1] += token
        elif token == "Y":
            words.append(str(rng.randint(2, 99) if rng.random() < 0.7 else rng.randint(1950, 2024)))
        elif token[0] in parts and (len(token) == 1 or token[1] in "3sei"):
            words.append(_form(rng.choice(parts[token[0]]), token[1:]))
            if words[-2:-1] in (["a"], ["an"]):
                words[-2] = "an" if words[-1][0] in "aeio" else "a"
        else:
            words.append(token)
    words[0] = words[0][0].upper() + words[0][1:]
    return " ".join(words)


def _form(word: str, ending: str) -> str:
    plain = {"": "", "3b": "", "s": "s", "3": "s", "s3": "s", "ed": "ed", "ing": "ing"}[ending]
    return inflected(word, plain) if plain else word


def sentences(rng: Random, count: int, words: list[str]) -> list[str]:
    """`count` sentences from all patterns."""
    parts, patterns = classes(words), items(SENTENCES)
    return [sentence(rng, parts, rng.choice(patterns)) for _ in range(count)]


def titles(rng: Random, count: int, words: list[str]) -> list[str]:
    """`count` titles of documents, 2 to 8 words, in the letter cases that titles have."""
    parts, ready = classes(words), items(TITLES)
    shapes = [
        "A N",
        "A N N",
        "N of A Ns",
        "Ns and Ns",
        "A N for the N Y",
        "The N of A N in N Ns",
        "N N N",
        "Ving the A N",
    ]
    made = [sentence(rng, parts, rng.choice(shapes)) for _ in range(count)]
    small = {"of", "and", "for", "the", "in"}
    cased = [
        " ".join(word if word in small else word[0].upper() + word[1:] for word in title.split()) for title in made
    ]
    return [title.upper() if rng.random() < 0.35 else title for title in ready + cased]


def keys(rng: Random, count: int) -> list[str]:
    """Our own labels and at least `count` put together, without repeats."""
    made = dict.fromkeys(items(KEYS))
    pairs = [f"{of} {end}" for of in items(KEY_OF) for end in items(KEY_END)]
    for pair in rng.sample(pairs, min(count, len(pairs))):
        made[pair.upper() if rng.random() < 0.3 else pair] = None
    return list(made)


def companies(rng: Random, count: int) -> list[str]:
    """`count` names of firms."""
    firm, trade, legal, last = items(FIRM), items(TRADE), items(LEGAL), items(LAST)
    shapes = (
        lambda: f"{rng.choice(firm)} {rng.choice(trade)} {rng.choice(legal)}",
        lambda: f"{rng.choice(firm)} {rng.choice(trade)}",
        lambda: f"{rng.choice(last)} {rng.choice(legal)}",
        lambda: f"{rng.choice(last)}, {rng.choice(last)} & {rng.choice(last)}",
        lambda: f"{rng.choice(last)} {rng.choice(trade)} {rng.choice(legal)}",
    )
    made = [rng.choice(shapes)() for _ in range(count)]
    return [name.upper() if rng.random() < 0.3 else name for name in made]


def products(rng: Random, count: int) -> list[str]:
    """`count` articles and services as shops print them."""
    article, grade, size = (
        items(ARTICLE),
        items(GRADE),
        ("500G", "1KG", "250ml", "12s", "A4", "3/4", "10MM", "No. 5", "x2"),
    )
    made = items(SERVICE)
    for _ in range(count):
        name = rng.choice(article)
        name = f"{rng.choice(grade)} {name}" if rng.random() < 0.6 else name
        name = f"{name} {rng.choice(size)}" if rng.random() < 0.4 else name
        made.append(rng.choice((str.upper, str.title, str.capitalize))(name))
    return made


def rarities(rng: Random, count: int) -> list[str]:
    """`count` words that no list holds: chemistry and brands."""
    stems, tails, syllables = STEMS.split(), TAILS.split(), SYLLABLES.split()
    made = []
    for _ in range(count // 2):
        name = "".join(rng.sample(stems, rng.randint(1, 2))) + rng.choice(tails).replace("-", " ")
        made.append(f"{rng.randint(1, 6)}-{name}" if rng.random() < 0.3 else name)
        brand = "".join(rng.sample(syllables, rng.randint(2, 4)))
        made.append(rng.choice((str.upper, str.title, str.title))(brand))
    return made


def streets(rng: Random, count: int) -> list[str]:
    """`count` streets, American and Malaysian."""
    own, end, jalan = items(STREET), items(STREET_END), items(JALAN)
    return [f"{rng.choice(own)} {rng.choice(end)}" if rng.random() < 0.8 else rng.choice(jalan) for _ in range(count)]


def own_pools(rng: Random, words: list[str] | None = None, count: int = 400) -> dict[str, list[str]]:
    """All pools from this module alone; `words`, the most frequent first, widen the sentences and titles."""
    own = FUNCTION.split() + NOUNS.split() + VERBS.split() + ADJECTIVES.split() + ADVERBS.split()
    pools = {
        "word": list(dict.fromkeys(own)),
        "rare": rarities(rng, count),
        "first": items(FIRST) + items(MALAY) + items(INDIAN),
        "last": items(LAST) + items(EAST_LAST) + items(INDIAN),
        "company": companies(rng, count),
        "street": streets(rng, count),
        "city": items(CITY),
        "state": items(STATE),
        "country": items(COUNTRY),
        "product": products(rng, count),
        "job": items(JOB),
        "department": items(DEPARTMENT),
        "title": titles(rng, count, words or []),
        "sentence": sentences(rng, count, words or []),
        "key": keys(rng, 500),
        "unit": items(UNIT),
        "month": items(MONTH),
    }
    return {kind: list(dict.fromkeys(pool)) for kind, pool in pools.items()}
