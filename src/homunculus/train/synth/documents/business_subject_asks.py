"""Free questions for the fields of forms of offices, insurers, customs, clinics and banks, as in business_form_asks."""

from __future__ import annotations

TAX = """# Tax year
For [which|what] year is the [return|tax]?/Which year is [taxed|declared]?/year of the tax return
What year's income does the form declare?/To which year does this tax form refer?
What period is taxed here, which year?/I am sorting my papers: which year's taxes are these?
# Taxpayer ID
What is the tax number of {who}?/Under which number is {who} [known to|registered with] the tax office?
tax number of {who}/Which number does {who} have for taxes?/What number did the tax office give {who}?
How does the tax office identify {who}, by which number?/I need the taxpayer number.
# Wages and salaries
How much was earned in wages?/How much did {who} earn by working?/income from work
What pay did {who} get from employment?/How much of the income came from a job?
How much was received in wages and salary?/What did {who} make at work that year?/What wages did I declare?
# Interest income
How much interest was [received|earned]?/How much did the savings bring in?/interest earned
What did the bank pay {who} in interest?/What interest did {who} get?
How much came from interest on money saved?/What interest did I declare?/How much did {who} gain in interest?
# Dividends
How much was received in dividends?/What did the shares pay out?/income from shares
How much money came from dividends?/What did {who} get for holding shares?/How much did stocks bring in?
What dividends did I declare?/Look up what was earned from shares.
# Rental income
How much rent was [received|earned]?/How much did {who} get in rent?/income from renting out
What did letting property bring in?/How much came in from tenants?/What did {who} earn as a landlord?
How much money was made by renting out?/What rent did I take in that year?
# Deductible expenses
How much can be deducted?/What [sum|amount] of costs is deducted?/expenses taken off
How much was claimed in deductions?/What did {who} take off the income as expenses?
How much may {who} subtract from income?/What deductions did I claim?/By how much do expenses lower the income?
# Taxable income
How much income is [taxable|taxed]?/On what income is the tax worked out?/income that is taxed
What income remains to be taxed?/On which amount does {who} pay tax?/How much of the income is taxed?
On how much money is tax charged?/What is the base for working out the tax?
# Tax withheld
How much tax was [withheld|already paid]?/What was kept back for tax?/tax kept back
How much tax has been taken from the pay in advance?/What has {who} already paid in tax?
How much tax was deducted at source?/How much did the employer hold back for taxes?
# Refund
How much [is refunded|money comes back]?/How much does {who} get back?/money back from the tax office
What will the tax office pay back?/How much was paid too much?/What do I get back from the tax people?
How much money is returned to {who}?/How big is the tax refund?/Good news first: how much do I get back?
# Tax payable
How much tax [is owed|has to be paid]?/What does {who} still owe?/tax still to pay
How much must {who} pay to the tax office?/What tax is left to pay?/What do I owe the tax people?
How large is the tax bill?/What sum does the tax office want?/How much do I have to transfer for tax?
# Number of dependants
How many people depend on {who}?/How many [dependants|dependents] does {who} have?/number of dependents
For how many persons does {who} care financially?/How many family members does {who} support?
How many were declared as dependants?/How many others live on {who}'s income?"""
INSURANCE = """# Policy number
What is the number of the policy?/Under which number is the policy [kept|held]?/number of the policy
Which policy is it, by number?/What number does my insurance contract have?
I am calling the insurer: what policy number do I give?/Which contract number does the insurance have?
# Claim number
What is the number of the claim?/Under which number is the [claim|damage] handled?/number of the claim
Which reference did the claim get?/What claim reference should I quote?/By what number can I follow my claim?
How is the claim identified at the insurer?/I want to ask how my claim stands: which number?
# Insured person
Who is insured?/Who holds the policy?/In whose name is the policy?/name of the policy holder
Who is covered by the insurance?/Whose insurance is it?/To whom does the policy belong?
Who took out the insurance?/For which person is there cover?/Name the one who is insured.
# Date of loss
When did [the accident|it|the damage] happen?/On [which|what] day did the accident happen?/day of the accident
When was the damage [done|caused]?/When did the incident take place?/When did the loss occur?
I need the day of the crash./When exactly did something go wrong?/On what date was there an accident?
# Place of accident
Where did [the accident|it|the damage] happen?/At [which|what] place did the accident happen?/accident site
Where did the crash take place?/What is the address where the loss occurred?/Where was the damage done?
Where exactly did the incident occur?/At which address did something go wrong?
# Amount claimed
How much is claimed?/How [high|large] is the damage?/damage in money
What sum does {who} claim?/How much money is asked of the insurer?/What does the damage amount to?
What is the damage thought to cost?/How much do I want the insurer to pay?/At how much is the loss put?
# Deductible
How much [must be borne by the insured|is the deductible]?/What part does {who} pay?/own share of the cost
What must {who} pay out of pocket?/How much of a loss do I carry myself?/What do I pay before the insurer does?
Which part of the damage is not paid by the insurer?/How high is the own share in a claim?
# Sum insured
For how much is it insured?/What is the [maximum cover|insured sum]?/insured up to
How much does the insurer pay at most?/Up to [which|what] amount is it [covered|insured]?
How high is the cover?/What is the most that the insurance would pay?/Up to what value am I covered?
# Annual premium
What does the insurance cost [a|per] year?/How much is the yearly premium?/yearly cost of the insurance
How much must {who} pay for the policy every year?/What do I pay the insurer each year?
What is the price of the cover for twelve months?/How expensive is the policy per year?
# Start of cover
When does the [cover|insurance|policy] [start|begin]?/From [when|which day] is it insured?/first day insured
Since when is {who} covered?/On [which|what] day does the protection begin?/When does the policy come into force?
From what date on does the insurer pay?/When am I covered from?
# End of cover
When does the [cover|insurance|policy] end?/Until [when|which day] is it insured?/last day insured
When does the policy run out?/On [which|what] day does the protection stop?/How long is {who} covered, until when?
When do I need a new policy?/Up to which date does the insurer pay?
# Type of insurance
What [kind|type|sort] of insurance is it?/What is insured, which line?/kind of insurance
Which sort of policy does {who} have?/What does the policy cover, by its type?
Is it a motor, travel or other insurance?/To which branch of insurance does it belong?
# Licence plate
What is the [licence|number] plate of the [vehicle|car]?/Which plate does the [car|vehicle] have?/car plate
What is on the number plate?/How is the vehicle registered, which plate?/What are the letters on the plate?
By which plate can I recognise the car?/I need the license plate number.
# Vehicle make and model
Which [car|vehicle] is it?/What [car|vehicle] [does {who} drive|was involved]?/make of the car
What model is the car?/Who made the car and what model is it?/What kind of car do they mean?
What is {who} driving?/Which make of automobile [is|was] stated?
# Police report no.
What is the number of the police report?/Under which number do the police keep it?/police reference
Which number did the police give [it|the case]?/What reference does the police file have?
Was it reported to the police, under which number?/How can the police find the report, by which number?"""
CUSTOMS = """# Consignor
Who sends the goods?/Who is the [exporter|sender]?/From which firm do the goods come?/sender of the goods
Which company ships the goods out?/Who dispatches the consignment?/Who exports these things?
What is the name of the firm that sends them?/Name the shipper.
# Consignee
Who receives the goods?/To whom are the goods sent?/For which firm are the goods?/receiver of the goods
Which company gets the shipment?/Who imports the goods?/Who will take delivery of the consignment?
What is the name of the receiving firm?/Which firm is waiting for these goods?
# Country of origin
Where do the goods come from?/In [which|what] country were the goods made?/where the goods come from
Which country produced them?/From which country do they originate?/Where were these things manufactured?
What is the country that the goods are from?/Made where?
# Country of destination
Where do the goods go[| to]?/To [which|what] country are the goods sent?/where the goods go
Into which country will they be imported?/In which country does the journey end?
What country is the shipment bound for?/Which country is it going to?/Heading for which country?
# Tariff number
Under which [tariff number|code] do the goods fall?/How are the goods classified?/tariff classification
What is the HS code of the goods?/Which code of the customs tariff applies?/What commodity code was declared?
To work out the duty: what code do the goods have?/By which number does customs classify them?
# Description of goods
What [is shipped|are the goods|is being sent]?/What is in the shipment?/what is inside
What kind of things are sent?/What is being [exported|declared]?/What does the consignment consist of?
What is inside the boxes?/What merchandise does it concern?/Tell customs what you are sending: what is it?
# Gross weight
How heavy is the shipment [gross|with its packing]?/How much does it weigh packing included?/weight with packing
What does everything weigh together with the packaging?/What is the weight of goods and packing?
How much does the load weigh gross?/Weight of the whole consignment, packing counted?
# Net weight
How heavy are the goods [net|without packing]?/How much do the goods alone weigh?/weight without packing
What do the goods weigh without their packaging?/What is the weight of the bare goods?
How much does the content weigh by itself?/Weight of the goods, packing not counted?
# Number of packages
How many packages are there?/How many parcels does it consist of?/how many parcels
In how many pieces is it sent?/How many boxes must arrive?/What is the count of packages?
I want to check that all is there: how many colli?/Of how many packages is the load made up?
# Customs value
What are the goods worth?/What value is declared?/How much are the goods worth for customs?/worth of the goods
On [which|what] value is duty charged?/At how much are the goods valued?
What did the sender state as their value?/How much money are these goods worth?
# Invoice currency
In [which|what] currency is it [billed|invoiced]?/Which money is it billed in?/currency of the bill
What currency is the invoice made out in?/In what money must the buyer pay?
Is it in dollars, euros or something else?/What currency is used?
# Place of loading
Where are the goods loaded?/From [which|what] [town|port|place] do they leave?/where it is loaded
In which city does the journey begin?/Where is the load taken on board?
At what place are the goods put on the vehicle?/Which town do the goods start from?
# Place of delivery
Where are the goods [delivered|unloaded]?/In [which|what] [town|place] do they arrive?/where it is unloaded
In which city does the journey end?/Where does the load come off?
At what place are the goods handed over?/To which town are they brought?
# Means of transport
How are the goods transported?/By [which|what] means are the goods sent?/how it travels
Does it go by road, rail, sea or air?/In which way do the goods travel?
How does the shipment get there?/Is it sent by ship, plane or lorry?/What carries the goods?
# Container no.
In which container are the goods?/What is the number of the container?/number of the container
Which number is on the container?/What container do I look for at the port?
How is the container marked, by what number?/Find the container's number.
# Declaration no.
What is the number of the [customs |]declaration?/Under which number was it declared?/number of the declaration
Which reference did customs give?/How can the declaration be found at customs?
What number do I quote to customs?/Under what registration does customs handle it?
# Customs office
[Which|What] customs office handles it?/At which customs post is it cleared?/office that clears the goods
Where is customs cleared?/Which town's customs deal with the goods?
Where do the goods cross customs?/At what place does customs check the goods?
# Terms of delivery
Which terms of delivery [apply|were agreed]?/On what terms is it delivered?/delivery conditions
Which Incoterm [applies|was agreed]?/Under which delivery clause is it sold?
Who pays the freight, by which clause?/What did buyer and seller agree on delivery?"""
MEDICAL = """# Patient name
Who is the patient?/What is the name of the patient?/Who is being treated?/name of the sick person
Whose medical form is this?/Who is ill?/About whom is this medical form?/Who came to the clinic?
# Patient ID
What is the number of the patient?/Under which number is the patient kept?/number of the patient
By which number does the clinic know the patient?/Which record number does the patient have?
I need the patient's file: under which number?/What ID does the patient have at the clinic?
# Referring doctor
Who is the [doctor|physician]?/Which doctor [sent|treats] the patient?/doctor in charge
Who is the patient's doctor?/What is the name of the doctor?/By which physician is the patient looked after?
Whom do I call about the treatment, which doctor?/Which practitioner takes care of the patient?
# Health insurer
With whom is the patient insured?/Which company pays for the treatment?/insurer of the patient
Who is the patient's health insurer?/Where is the patient insured?/To which insurer does the bill go?
What is the name of the health insurance fund?/Who covers the costs of the clinic?
# Insurance card no.
What number does the patient's insurance card have?/Under which number is the patient insured?
number on the insurance card/Which number does the insurer know the patient by?/What is the member number?
I need the number of the health insurance card./By what number is the patient a member of the insurer?
# Blood group
[Which|What] blood [group|type] does the patient have?/What kind of blood does the patient need?/blood type
To which blood group does the patient belong?/If blood is needed, of which type?
What is the patient's blood [group|type]?/Look up the blood type.
# Height (cm)
How tall is the patient?/How many centimetres tall is the patient?/size of the patient in cm
What is the patient's height?/How big is the patient, in centimeters?
What did they measure as the patient's height?/Height of the patient?
# Weight (kg)
How much does the patient weigh?/How heavy is the patient?/patient's weight in kilos
What did the scales show?/How many kilos does the patient weigh?/What is the patient's weight?
For the right dose: how heavy is the patient?
# Allergies
What is the patient allergic to?/Does the patient have allergies, which?/allergic to what
What must the patient not be given, because of allergy?/Which allergies are known?
To which substances does the patient react?/Is there anything the patient is allergic to?
# Current medication
What [drugs|medicine] does the patient take?/Which medicine does the patient take now?/drugs taken now
What pills is the patient on?/What is the patient being treated with already?
Does the patient take any medicine, which?/What has the patient been taking lately?
# Diagnosis
What is the patient [suffering from|diagnosed with]?/What illness does the patient have?/illness of the patient
What is wrong with the patient?/What did the doctor find?/Which disease was found?
What is the patient being treated for?/From what does the patient suffer?/What has the patient got?
# Date of admission
When was the patient admitted?/When did the patient come [in|to the clinic]?/day the patient came in
On [which|what] day did the patient come?/Since when is the patient in the clinic?
When did the treatment at the clinic begin?/When was the patient taken in?
# Date of discharge
When was the patient discharged?/When could the patient go home?/day the patient went home
On [which|what] day did the patient leave the clinic?/When was the patient released?
Until when was the patient in the clinic?/When was the patient sent home?
# Ward
[On|In] [which|what] ward is the patient?/Where in the clinic does the patient lie?/ward of the patient
Which station looks after the patient?/To which unit was the patient brought?
I want to visit the patient: which ward?/In what part of the hospital is the patient?
# Blood pressure
How high is the patient's blood pressure?/What blood pressure was measured?/pressure of the blood
What is the patient's blood pressure?/Is the pressure too high, what was read?
Which two figures were taken as blood pressure?/What did the pressure cuff show?
# Emergency contact
Who [should be|is to be] called in an emergency?/Whom do we call if something happens?/who to call in emergency
Who is the next of kin?/Which relative should be told?/Whom must the clinic inform in case of need?
If things get worse, who is to be notified?/Who should hear first when something goes wrong?"""
LOAN = """# Amount requested
How much [money is requested|does {who} want to borrow]?/How [large|high] is the loan?/sum to be borrowed
What sum does {who} ask the bank for?/How much money does {who} need from the bank?
How much would I borrow?/What loan is applied for, in money?/For how much credit is the application?
# Purpose of loan
What is the loan for?/What will the money be used for?/what the money is for
For what purpose does {who} borrow?/Why does {who} need the money?/What does {who} want to do with the loan?
On what is the money to be spent?/What shall be paid with the credit?
# Term (months)
[Over|For] how many months does the loan run?/In how many months is it paid back?/months to repay
How long does {who} have to repay the loan?/How long does the loan last?/After how many months is it paid off?
Over what time is the loan repaid?/How many instalments, one a month, are there?
# Monthly instalment
How much is paid [back |]each month?/What does {who} pay the bank every month?/paid back per month
How much must {who} repay per month?/What is the monthly burden of the loan?
How high is each instalment?/What will the loan cost me a month?/How much goes to the bank monthly?
# Interest rate
How high is the interest?/What interest does the bank charge?/interest in percent
At [which|what] rate is money lent?/What percentage is charged for the loan?/How many percent is the interest?
How expensive is the credit, in percent a year?/What does the bank take for lending, in percent?
# Account number
To which account is the money paid?/What is the number of {who}'s bank account?/number of the account
Which account should the money go to?/Under what number is {who}'s account kept?
Into what account is the loan paid?/What account number did I give?
# IBAN
What is {who}'s IBAN?/Which international account number does {who} have?/iban of {who}
What is the international number of the account?/I want to transfer the money: what IBAN do I use?
Which IBAN [is|was] entered?/Find the IBAN.
# Monthly rent
How much rent does {who} pay?/What does {who} pay for housing each month?/rent paid per month
What does the flat cost {who} per month?/How much goes to the landlord monthly?
How expensive is {who}'s home a month?/How high is {who}'s rent?
# Other debts
How much does {who} owe elsewhere?/What other debts does {who} have?/debts with others
How high are {who}'s other loans?/Does {who} have debts already, how much?
What does {who} already owe?/How much money does {who} owe to others?/What other liabilities are declared?
# Guarantor
Who guarantees the loan?/Who stands surety for {who}?/person who guarantees
Who pays if {who} cannot?/Who signs for the loan besides {who}?/Who vouches for {who}?
What is the name of the person who backs the loan?/On whom can the bank fall back?"""
