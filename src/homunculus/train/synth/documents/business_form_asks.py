"""Free questions for the fields of forms about people: "#" and the first label of a field, then what is asked."""

from __future__ import annotations


def read_asks(text: str, who: str = "the person") -> dict[str, tuple[str, ...]]:
    """Questions by the first label of their field; slashes and line ends separate them, {who} is the person."""
    found: dict[str, tuple[str, ...]] = {}
    for part in text.split("# ")[1:]:
        label, *rows = part.strip().split("\n")
        found[label] = tuple(ask.replace("{who}", who) for row in rows for ask in row.split("/") if ask)
    return found


PERSON = """# Last name
What is the [family|last] name of {who}?/family name of {who}/What surname [did I|was] put down?
By [which|what] surname is {who} known?/What is {who} called by last name?/I need only the surname, please.
How is {who}'s family name spelled?/Under which last name is {who} registered here?/Look up {who}'s surname.
# First name
What is the [given|first] name of {who}?/first name of {who}/Tell me the given name only, without the surname.
What is {who} called by first name?/Which forename [is|was] entered?/How is {who}'s forename spelled?
By what first name does {who} go?/What did I write as my given name?/Find {who}'s first name.
# Date of birth
When was {who} born?/What is {who}'s birthday?/On [which|what] day was {who} born?/birthday of {who}
When did {who} come into the world?/I want to check the age: what birth date is stated?/When is the birthday?
Look up {who}'s birth date./On which date does {who} have birthday?/What [date of birth|birthday] did I enter?
# Nationality
[Which|What] nationality does {who} have?/What country is {who} a citizen of?/nationality of {who}
Of which country does {who} hold a passport?/Which country's citizen is {who}?
What citizenship was declared?/To which nation does {who} belong?/Of what nationality is {who}?
# Street and number
In [which|what] street does {who} live?/At which street and house number does {who} live?
What is the [house number and street|street and house number] of {who}?/street address of {who}
Which road is {who}'s home in?/I need the first line of the home address./Name the street where {who} lives.
Where should the postman ring: which street and number?
# Postal code
What is the [postal|zip] code of {who}'s town?/Which postcode does {who}'s address have?/zip of home address
What post code goes with {who}'s address?/Which ZIP should I put on a letter to {who}?
I need {who}'s postcode for the envelope./Find the postal code of the place where {who} lives.
# City
In [which|what] [town|city] does {who} live?/Which town does {who} live in?/home town of {who}
What is the name of the [town|city] where {who} lives?/Where is {who} resident, in which municipality?
What place does {who} live at?/In what city is {who}'s home?/Tell me {who}'s town.
# Country
In [which|what] country does {who} live?/Which country is {who}'s home in?/country where {who} lives
What country is given in {who}'s address?/In which state of the world is {who} resident?
Where does {who} live, in which country?/Name the country of {who}'s home.
# Phone
[At|On] [which|what] number can {who} be [called|reached]?/What number do I dial to reach {who}?
How can I ring {who} up?/phone number of {who}/Which [telephone|phone] number did {who} give?
I have to call {who}, what is the number?/Under which number is {who} reachable by phone?/Find {who}'s number to call.
# E-mail
Where can I send an e-mail to {who}?/Which mail address does {who} use?/email of {who}
How do I reach {who} by e-mail?/What is {who}'s [e-mail|email] address?/I want to mail {who}, to which address?
Which electronic address [is|was] left for replies?/Give me the e-mail contact of {who}.
# Marital status
What is the marital status of {who}?/Is {who} married or single?/[single or married|married or not]
Does {who} have a spouse, by civil status?/Is {who} married, single or something else?
What did {who} state on being married?/What is {who}'s family status?/Which marital status did I enter?
# Place of birth
Where was {who} born?/In [which|what] [town|city|place] was {who} born?/birthplace of {who}
Which town was {who} born in?/What is the [native town|place of birth] of {who}?
Where did {who} come into the world?/Where is {who} from by birth?/Look up the town of birth.
# Occupation
What does {who} do for a living?/What is {who}'s [job|profession]?/job of {who}
As what does {who} work at present?/What kind of work does {who} do?/Which profession does {who} have?
How does {who} earn a living?/What trade is {who} in?/What did I state as my present job?
# Social security number
What is {who}'s [social security|national ID] number?/social security no. of {who}
Under which number is {who} [known to|registered with] social security?/What SSN [is|was] entered?
Which [social security|national identity] number does {who} have?/I need {who}'s social security number.
Find {who}'s [social security|national insurance] number."""
WORK = """# Employer
[Where|For whom] does {who} work?/Who is the employer?/What company [employs|pays] {who}?/employer of {who}
What is the name of the firm where {who} works?/Who does {who} work for at present?
With which company is {who} employed?/Which business gives {who} work?/Name {who}'s employer.
# Employer's address
Where is {who}'s employer based?/What is the address of {who}'s workplace?/address of the workplace
At what address does {who} work?/Where does {who} go to work?/Where is the firm that {who} works for?
To which address do I write to reach {who} at work?/I need the employer's address.
# Employed since
Since when [does|has] {who} [worked|been employed] there?/When did {who} start [this|the present] job?
When was {who} hired?/When did {who} join the [company|firm]?/start date of the present job
From which date on is {who} with this employer?/On [which|what] day did the employment begin?
Find the day on which {who} was taken on.
# Gross annual income
How much does {who} earn [a|per] year?/What is {who}'s income per year?/yearly pay of {who}
What does {who} make in a year before tax?/How high is the yearly salary of {who}?
What are {who}'s earnings in twelve months?/How much money comes in for {who} each year?
To check if {who} can afford it: what is the income per year?
# Working hours per week
How many hours [a|per] week does {who} work?/How long is {who}'s working week?/hours worked in a week
What is the number of hours {who} works each week?/Does {who} work full time, how many hours a week?
How much does {who} work weekly, in hours?/Tell me how many hours {who} works from Monday to Sunday.
# Department
In [which|what] [department|division] does {who} work?/To which part of the company does {who} belong?
Which unit of the firm is {who} in?/department where {who} works/In which team of the company is {who}?
What department is {who} assigned to?/Which division employs {who}?
# Supervisor
Who is {who}'s boss?/Who is {who}'s [superior|manager]?/To whom does {who} report?/boss of {who}
What is the name of the person that {who} reports to?/Who is in charge of {who} at work?
Under whom does {who} work?/Who could I ask about {who} at work, the boss?/Name {who}'s manager."""
OFFICE = """# Case number
Under [which|what] reference is the case [kept|filed]?/What is the reference of this case?/case reference
Which file number did the office give it?/What reference should I quote when I call about this case?
What number does the case have at the office?/I want to ask about my case: which reference do I give?
# Received on
When [was|is] the form received?/When did the [office|form] [get it|arrive]?/day the form came in
On [which|what] day did the form come in?/When did it reach the office?/When was it stamped as received?
Was it in time: when did the office get it?/When did these papers arrive at the office?
# Processed by
Who [handled|processed|dealt with] [the form|it] at the office?/Who at the office is in charge of it?
Which official looked after the case?/name of the officer in charge/Whom at the office can I ask about this case?
Who took care of the request at the office?/Which member of staff worked on this form?
# Approved on
When was it approved?/When was the decision taken?/On [which|what] [day|date] was it [approved|decided]?
When did they say yes to it?/date the decision was made/When did the request get a green light?
Since when is it approved?/When did the office decide?/Find the day of the decision.
# Office
Which branch [deals with|handles] it?/In which town is the office that [handles|issued] it?
Where is the office in charge?/town of the office/At which branch was the form dealt with?
Which place's office is responsible for it?/To which branch did the form go?"""
APPLY = """# Position applied for
[For which|What] job [does {who} apply|is applied for]?/What job does {who} want?/job wanted
Which position would {who} like to have?/What does {who} want to work as?/For what post is the application?
What role is {who} after?/I am filing applications: which job is this one for?/Which vacancy is it about?
# Available from
When can {who} start?/From [when|which date] is {who} [free|available]?/earliest day to start work
How soon could {who} begin?/When could {who} begin the new job?/When is the earliest possible first day?
On which day could {who} come to work for the first time?/Look up when {who} can begin.
# Expected salary
What salary does {who} [want|expect]?/How much does {who} want to earn?/wanted pay
What pay is {who} asking for?/How much money would {who} like to get in the new job?
What does {who} hope to be paid?/How high are the salary expectations?/What would {who} cost us in salary?
# Highest degree
What is {who}'s highest degree?/Which degree does {who} have?/highest level of education
How well educated is {who}, what is the highest degree?/What education has {who} completed?
With which qualification did {who} finish?/What schooling does {who} have, at most?/Name {who}'s qualification.
# Institution
Where did {who} study?/Which school did {who} go to?/school of {who}/At which institution was {who} trained?
What is the name of the [school|university] that {who} attended?/Where was {who} educated?
Who gave {who} the degree, which institution?/From which place of learning does {who} come?
# Years of experience
How many years of experience does {who} have?/For how many years has {who} done such work?/years of practice
How experienced is {who}, in years?/How long has {who} been in the trade?
How many years has {who} worked in this field?/What experience does {who} bring, in years?
# Notice period
How long is the notice [period|]?/What notice does {who} have to give?/time of notice
How much notice must {who} give the present employer?/How long before leaving must {who} give notice?
After giving notice, how long must {who} stay?/Within what time can {who} quit the old job?
# Languages
Which languages does {who} speak?/What languages does {who} know?/languages spoken
In which languages can I talk to {who}?/Which tongues is {who} able to speak?
What can {who} speak?/Can {who} speak other languages, which ones?/Find the languages that {who} knows.
# Driving licence
[Which|What] [driving licence|driver's license] does {who} have?/For which class may {who} drive?
What kinds of vehicles may {who} drive, by class?/class of the licence to drive
May {who} drive a car, what class is stated?/What does it say about a licence to drive?
# Permit type
What [kind|type] of permit does {who} have?/Which permit does {who} hold?/kind of permit
Under which permit is {who} allowed to [work|stay]?/What letter does {who}'s permit have?
On what permit is {who} in the country?/Which sort of residence or work permit [is|was] stated?"""
EVENT = """# Arrival date
When does {who} [arrive|come|get here]?/On [which|what] day does the stay begin?/first day of the stay
When does {who} check in?/From which date on is the booking?/When should we expect {who}?
When is {who} supposed to be here?/What is the first day of my stay?/Look up when {who} comes.
# Departure date
When does {who} [leave|depart|go home]?/On [which|what] day does the stay end?/last day of the stay
When does {who} check out?/Until [when|which date] is the booking?/When must the room be free again?
What is the day of leaving?/When do I have to check out?/Find out when {who} goes away again.
# Room number
In [which|what] room does {who} stay?/Which room did {who} get?/room of {who}
What is the number of the room?/Where in the house does {who} sleep, which room?
At which door do I have to knock?/Which room key do I need?/Tell me {who}'s room.
# Number of guests
How many [guests|people] are there?/How many [people|persons] will [come|stay]?/how many people come
For how many people is the booking?/How many persons is it booked for?/What is the size of the party?
How many beds are needed, one for each person?/How many of us are booked in?
# Booking reference
What is the [booking|reservation] [code|number]?/Under which reference is it booked?/booking code
What code confirms the booking?/I want to change my booking: what reference do I give?
Which confirmation number did I get?/How can the reservation be found, by which code?
# Passport number
What is the number of {who}'s [passport|identity document]?/passport number of {who}
Which number is on {who}'s passport?/By which document number is {who} identified?
What ID did {who} show, which number?/I need the passport number for the police form.
# Flight number
[With|On] [which|what] flight does {who} [come|arrive]?/Which plane is {who} on?/flight of {who}
What is the [code|number] of the flight?/Which flight should I watch to pick {who} up?
By which flight does {who} travel?/What flight was I on?/Look up the number of {who}'s plane.
# Rate per night
What does [a|one] night cost?/How much is [a|one] night?/cost of one night
How much do I pay per night?/What is charged for each night?/How expensive is it to sleep here for one night?
What is the nightly rate?/How much money is a single night in the room?"""
