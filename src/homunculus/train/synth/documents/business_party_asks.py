"""Who is behind a business paper and whom it is for: many ways to ask."""

from __future__ import annotations

WHO_PAYS = (
    "Who is [billed|invoiced|the customer|the client]?", "To whom is the {doc} [addressed|made out|sent]?",
    "Who [has to pay|bought this|gets the {doc}]?", "What is the name of the [customer|client|buyer]?",
    "Who is the {doc} addressed to?", "Which customer is [this|the] {doc} for?", "name of the customer",
    "For whom [is|was] [this|the] {doc} [written|drawn up]?", "Who [ordered|buys] [the goods|this|these things]?",
    "In whose name is the {doc}?", "Whose {doc} is this, which customer's?",
    "Which client is [this|the] {doc} meant for?",
    "I sort by customer: whose {doc} is this?", "Name the [customer|buyer|client].", "Find the customer's name.",
    "Who is the buyer[| here]?", "With which customer is this business done?", "customer that the {doc} went to",
    "[Which|What] person or firm is the customer?", "Who did they send the {doc} to?",
)  # fmt: skip
WHO_GETS = (
    "To whom are the goods [sent|shipped|delivered]?", "Who [receives|gets] the [goods|delivery|shipment]?",
    "What is the name at the [delivery|shipping] address?", "Who takes delivery of the goods?",
    "For whom is the [parcel|shipment|delivery]?", "Whom should the driver ask for[| at the door]?",
    "name on the parcel", "Who will unpack the goods?", "To [which person or firm|whom] do the goods go?",
    "Who is the recipient of the [goods|shipment]?", "Who is waiting for the goods?",
    "The driver wants to know: who gets the goods?", "Name the [receiver|recipient] of the goods.",
    "Find [out |]who receives the goods.", "receiver of the shipment", "Whose name goes on the parcel?",
)  # fmt: skip
WHERE_PAYS = (
    "What is the [billing|invoice] address?", "What is the address of the [customer|client]?",
    "Where [does the customer live|is the customer based]?", "address of the customer",
    "To which address [is|was] the {doc} [sent|mailed]?", "Where does the {doc} go by post?",
    "At what address is the [buyer|client|customer]?", "I want to write to the customer: what is the address?",
    "What is the customer's [postal|mailing] address?", "Where is the [client|buyer] to be found?",
    "Give me the customer's address.", "Look up the customer's address.", "Where should I mail the {doc}?",
    "Which address does the customer have?", "street and town of the customer", "Where can I visit the customer?",
)  # fmt: skip
WHERE_GETS = (
    "What is the [delivery|shipping] address?", "Where [are|were] the goods [sent|delivered|shipped]?",
    "To [which|what] address [is|was] it [sent|shipped|delivered]?", "Where does the driver have to go?",
    "Where do the goods have to be?", "At what address are the goods handed over?", "address for the delivery",
    "Where should the parcel be brought?", "To which place do the goods travel?", "Where will the shipment arrive?",
    "Where do I have to [unload|deliver]?", "I drive the van: where do the goods go?", "Where is the delivery going?",
    "Give me the address that the goods go to.", "Look up where the goods are to be brought.",
)  # fmt: skip
SELLER = (
    "Who [issued|sent|wrote] [this|the] {doc}?", "Which company is [this|the] {doc} from?",
    "What is the name of the [seller|supplier|vendor|company]?", "Who is the [seller|supplier|vendor]?",
    "Who sells [this|the goods|these things]?", "Which [firm|company|business] [issued|sent] the {doc}?",
    "Whose letterhead is it?", "From whom did [I|we|they] get [this|the] {doc}?", "name of the seller",
    "Which supplier is it?", "Who supplies [it|the goods]?", "With which supplier [was|is] this business done?",
    "I file papers by supplier: whose is this?", "Which firm is behind [this|the] {doc}?", "Name the supplier.",
    "Find the name of the [supplier|seller].", "company that sent the {doc}", "Who does the {doc} come from?",
    "Which vendor [is this from|sent this]?", "By which company was the {doc} [issued|made out]?",
)  # fmt: skip
ISSUER = (  # {firm}: bank, company, employer
    "Which {firm} [issued|sent] [this|the] {doc}?", "Who is [this|the] {doc} from?", "name of the {firm}",
    "What is the name of the [{firm}|issuer]?", "Who [issued|sent] the {doc}?", "Whose letterhead is this?",
    "From [whom|which {firm}] did I get [this|the] {doc}?", "sender of the {doc}", "Who made out the {doc}?",
    "Which {firm} does the {doc} come from?", "Who is the sender?", "Who drew up [this|the] {doc}?",
    "By whom was the {doc} issued?", "Which {firm} is behind [this|the] {doc}?", "What is the {firm} called?",
    "I am sorting my post: who sent this {doc}?", "Name the issuer of the {doc}.", "Find who issued the {doc}.",
    "I want to complain about this {doc}: to which {firm}?", "From which {firm} does this paper come?",
)  # fmt: skip
OWNER = (
    "Who is the {doc} addressed to?", "To whom is [this|the] {doc} addressed?", "Whose {doc} is [this|it]?",
    "What is the name of the [customer|addressee|account holder]?", "Who [gets|receives] [this|the] {doc}?",
    "For whom is [this|the] {doc}?", "In whose name is [this|the] {doc}?", "To whom does this {doc} belong?",
    "Who [was|is] [this|the] {doc} [sent|mailed] to?", "addressee of the {doc}", "name of the addressee",
    "Which person or firm gets [this|the] {doc}?", "Who should open this letter?", "Name the addressee.",
    "I found this {doc}: whose is it?", "Find out who the {doc} is for.", "Who is the recipient of the {doc}?",
)  # fmt: skip
HOME = (
    "What is the address of the [customer|addressee]?", "Where does [{name}|the customer] live?",
    "What is {name}'s address?", "At [which|what] address does {name} live?", "address of {name}",
    "Where was [this|the] {doc} sent[| by post]?", "To which address was the {doc} mailed?",
    "Where is the home of {name}?", "How is a letter to {name} addressed?", "Where can {name} be found?",
    "Which address do they have for {name}?", "I moved: which address do they still use for [me|{name}]?",
    "Give me the address of {name}.", "Look up where {name} lives.", "street and town of {name}",
    "Where does the addressee live?",
)  # fmt: skip
OFFICE = (
    "Who issues [this|the] {doc}?", "Which [office|authority|organisation] is [this|the] {doc} from?",
    "What is the name of the [office|authority|issuer]?", "Whose {doc} is this, which institution's?",
    "Which institution [issues|uses] [this|the] {doc}?", "To whom is the {doc} handed in?", "issuer of the {doc}",
    "Who wants this {doc} filled in?", "Which body is behind [this|the] {doc}?", "Who asks for these data?",
    "By whom was [this|the] {doc} [issued|made]?", "From where did I get this {doc}, which institution?",
    "Name the institution that issues the {doc}.", "Find the issuer of the {doc}.", "Who gave out this {doc}?",
)  # fmt: skip
SIGNED = (
    ("Where was [it|the {doc}] signed?", "[In which|What] place was it signed[| in]?", "place of signing",
     "In which town did they sign[| it]?", "Where did the person sign [it|the {doc}]?", "At what place was it signed?",
     "Where was the signature given?", "What town is written beside the signature?", "Name the place of signature.",
     "In what city was the {doc} signed?", "Which place comes with the signature?"),
    ("When was [it|the {doc}] signed?", "What is the date of the signature?", "On [which|what] day was it signed?",
     "day it was signed", "When did the person sign [it|the {doc}]?", "Since when is it signed?",
     "What date is beside the signature?", "Which date comes with the signature?", "Find the date of signing.",
     "When was the signature put on the {doc}?", "What day did they sign it on?"),
)  # fmt: skip
REVISION = (
    "What is the [form number|number of the form]?", "Which [form|form number] is this?", "number of this form",
    "How is this form called, by its number?", "I want to download this form: what is its number?",
    "By which [code|number] does the office know this kind of form?", "Under which number do I find this blank form?",
    "What number is printed on every form of this kind?", "Which code does the blank form have?",
    "Name the number of the printed form.", "What do I search for to get the same form?",
)  # fmt: skip
