"""Fields of printed forms by subject: labels = kind of value = questions, the last separated by slashes."""

from __future__ import annotations

from homunculus.train.documents.business_terms import Term

_PERSON = """Last name|Surname|Family name=last
First name|Given name|First names|Forename=first
Date of birth|Birth date|DOB|Born on=birth=When was the [person|applicant|patient] born?/What is the birthday?
Nationality|Citizenship|Citizen of=country=[Which|What] nationality does the person have?\
/What country is the person a citizen of?
Street and number|Street|Home address|Address line 1=street_line
Postal code|ZIP code|Postcode|ZIP=postcode
City|Town|Place of residence|Municipality=city
Country|Country of residence=country
Phone|Telephone|Daytime phone|Mobile|Phone number=phone
E-mail|Email address|E-mail address=email
Marital status|Civil status=Single/Married/Divorced/Widowed/Separated=What is the marital status of the person?
Place of birth|Born in|Birthplace=city=Where was the person born?
Occupation|Profession|Current job|Job title=job=What does the person do for a living?/What is the person's job?
Social security number|SSN|Insurance number|National ID no.=ssn"""
_WORK = """Employer|Name of employer|Company|Current employer=company=[Where|For whom] does the person work?\
/Who is the employer?
Employer's address|Business address|Work address=full_address
Employed since|Start of employment|Date of hire=date=Since when [does|has] the person [worked|been employed] there?
Gross annual income|Yearly income|Annual salary=money=How much does the person earn [a|per] year?
Working hours per week|Weekly hours|Hours per week=20/24/32/37.5/38.5/40/42\
=How many hours [a|per] week does the person work?
Department|Division|Cost centre=department
Supervisor|Line manager|Reports to=person"""
_OFFICE = """Form no.|Case number|File no.|Reference=code
Received on|Date received|Entry date=date=When was the form received?
Processed by|Clerk|Case officer|Handled by=person=Who [handled|processed] the form?
Approved on|Date of approval|Decision date=date=When was it approved?
Office|Branch|Issuing office=city"""
_TAX = """Tax year|Year of assessment|Fiscal year=2017/2018/2019/2020/2021/2022/2023/2024/2025\
=For [which|what] year is the [return|tax]?
Taxpayer ID|Tax number|TIN|Tax file no.=vat
Wages and salaries|Employment income|Wages, tips=money=How much was earned in wages?
Interest income|Taxable interest|Interest received=money=How much interest was [received|earned]?
Dividends|Ordinary dividends|Dividend income=money=How much was received in dividends?
Rental income|Income from rent=money=How much rent was [received|earned]?
Deductible expenses|Itemized deductions|Allowable deductions=money
Taxable income|Income subject to tax=money=How much income is [taxable|taxed]?
Tax withheld|Federal tax withheld|Tax already paid=money=How much tax was [withheld|already paid]?
Refund|Amount to be refunded|Overpayment=money=How much [is refunded|money comes back]?
Tax payable|Amount you owe|Tax due=money=How much tax [is owed|has to be paid]?
Number of dependants|Dependants|Children in household=count"""
_INSURANCE = """Policy number|Policy no.|Insurance policy=code=What is the number of the policy?
Claim number|Claim no.|Claim reference=code=What is the number of the claim?
Insured person|Policyholder|Name of insured=person=Who is insured?/Who holds the policy?
Date of loss|Date of accident|Date of incident=date=When did [the accident|it|the damage] happen?
Place of accident|Location of loss|Scene of accident=full_address=Where did [the accident|it] happen?
Amount claimed|Claim amount|Estimated damage=money=How much is claimed?/How [high|large] is the damage?
Deductible|Excess|Own share=money=How much [must be borne by the insured|is the deductible]?
Sum insured|Insured value|Coverage amount=money=For how much is it insured?/What is the [maximum cover|insured sum]?
Annual premium|Premium per year|Yearly premium=money=What does the insurance cost [a|per] year?\
/How much is the yearly premium?
Start of cover|Cover from|Effective date=date=When does the [cover|insurance|policy] [start|begin]?
End of cover|Cover to|Policy expires=date=When does the [cover|insurance|policy] end?
Type of insurance|Line of business|Cover type=Household/Motor/Liability/Travel/Health/Life/Legal protection\
=What [kind|type] of insurance is it?
Licence plate|Registration plate|Plate no.=code=What is the [licence plate|plate number] of the vehicle?
Vehicle make and model|Make of vehicle=VW Golf/Toyota Corolla/Ford Focus/Volvo V60/Skoda Octavia/Honda Civic\
=Which [car|vehicle] is it?
Police report no.|Police file number=code"""
_CUSTOMS = """Consignor|Exporter|Sender=company=Who sends the goods?/Who is the [exporter|sender]?
Consignee|Importer|Recipient of goods=company=Who receives the goods?/To whom are the goods sent?
Country of origin|Origin=country=Where do the goods come from?
Country of destination|Destination=country=Where do the goods go[| to]?
Tariff number|HS code|Commodity code=number
Description of goods|Goods|Contents=product=What [is shipped|are the goods|is being sent]?
Gross weight|Gross mass|Weight gross (kg)=weight=How heavy is the shipment [gross|in total]?
Net weight|Net mass|Weight net (kg)=weight
Number of packages|Packages|Total packages=count=How many packages are there?
Customs value|Declared value|Statistical value=money=What are the goods worth?/What value is declared?
Invoice currency|Currency=USD/EUR/GBP/CHF/JPY/SEK
Place of loading|Port of loading|Loaded at=city
Place of delivery|Port of discharge|Delivered at=city
Means of transport|Mode of transport|Transport=Road/Rail/Sea/Air/Post=How are the goods transported?
Container no.|Container number=code
Declaration no.|MRN|Customs reference=code
Customs office|Office of exit=city
Terms of delivery|Incoterms=EXW/FOB/DAP/DDP/CIF/FCA"""
_MEDICAL = """Patient name|Name of patient|Patient=person=Who is the patient?
Patient ID|Patient number|Medical record no.=number
Referring doctor|Attending physician|Family doctor=person=Who is the [doctor|physician]?\
/Which doctor [sent|treats] the patient?
Health insurer|Insurance company|Name of insurer=company=With whom is the patient insured?
Insurance card no.|Member ID|Insured no.=number
Blood group|Blood type=A+/A-/B+/0+/0-/AB+
Height (cm)|Body height=158/163/167/171/174/178/182/186=How tall is the patient?
Weight (kg)|Body weight=52/58/61/67/72/76/81/88/94=How much does the patient weigh?
Allergies|Known allergies=None/Penicillin/Pollen/Latex/Nuts/Aspirin=What is the patient allergic to?
Current medication|Medication|Medicines taken=None/Ibuprofen 400 mg/Metformin 500 mg/Ramipril 5 mg/Aspirin 100 mg\
=What [drugs|medicine] does the patient take?
Diagnosis|Main diagnosis|Finding=Hypertension/Asthma/Fracture of wrist/Migraine/Type 2 diabetes/Bronchitis\
=What is the patient [suffering from|diagnosed with]?
Date of admission|Admitted on|Date of visit=date=When was the patient admitted?
Date of discharge|Discharged on=date=When was the patient discharged?
Ward|Station|Unit=department
Blood pressure|BP (mmHg)=pressure
Emergency contact|In case of emergency notify|Next of kin=person"""
_APPLY = """Position applied for|Desired position|Job applied for=job\
=[For which|What] job [does the person apply|is applied for]?
Available from|Earliest start date|Possible start=date=When can the [person|applicant] start?
Expected salary|Salary requirement|Desired salary=money=What salary does the applicant [want|expect]?
Highest degree|Education|Qualification=Bachelor/Master/Diploma/PhD/High school/Apprenticeship
Institution|School|University=company
Years of experience|Experience (years)=count=How many years of experience does the applicant have?
Notice period|Period of notice=1 month/2 months/3 months/4 weeks/none=How long is the notice period?
Languages|Language skills=English/German, French/English, Spanish/Italian/Swedish, English\
=Which languages does the applicant speak?
Driving licence|Driver's license class=B/A, B/C1/none
Permit type|Work permit|Residence permit=B/C/L/G/none"""
_LOAN = """Amount requested|Loan amount|Credit requested=money\
=How much [money is requested|does the applicant want to borrow]?/How [large|high] is the loan?
Purpose of loan|Loan purpose|Use of funds=Car/Renovation/Education/Debt consolidation/Business start-up\
=What is the loan for?
Term (months)|Loan term|Repayment period=12/24/36/48/60/72/84=[Over|For] how many months does the loan run?
Monthly instalment|Monthly payment|Monthly rate=money=How much is paid [back |]each month?
Interest rate|Rate p.a.|Annual interest=rate=How high is the interest?
Account number|Bank account|Account for payment=account
IBAN|IBAN of applicant=iban
Monthly rent|Rent per month|Housing costs=money=How much rent does the applicant pay?
Other debts|Existing loans|Other liabilities=money
Guarantor|Surety|Co-signer=person"""
_EVENT = """Arrival date|Check-in|Date of arrival=date=When does the guest arrive?
Departure date|Check-out|Date of departure=date=When does the guest leave?
Room number|Room=count
Number of guests|Guests|Persons=count=How many [guests|people] are there?
Booking reference|Confirmation no.|Reservation code=code
Passport number|Passport no.|ID document no.=code
Flight number|Flight|Arriving flight=LX 318/BA 712/LH 1184/UA 930/AF 1042
Rate per night|Room rate|Price per night=money"""

# Subject: titles of the form, and its sections with their fields.
_FORMS: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "tax": ("Income Tax Return|Tax Return for Individuals|Annual Tax Statement|Request for Tax Refund|Wage Statement",
            (("Taxpayer|Personal data", _PERSON), ("Income and deductions|Assessment", _TAX), ("Employment", _WORK),
             ("Official use only", _OFFICE))),
    "insurance": ("Notice of Claim|Insurance Application|Accident Report|Motor Claim Form|Certificate of Insurance",
                  (("Policy and claim|Details of the loss|Cover", _INSURANCE), ("Policyholder|Insured person", _PERSON)\
,
                   ("For office use", _OFFICE))),
    "customs": ("Customs Declaration|Export Declaration|Certificate of Origin|Shipping Declaration|Import Licence "
        "Request",
                (("Consignment|Goods and transport|Shipment", _CUSTOMS), ("For office use|Customs endorsement",
                    _OFFICE))),
    "medical": ("Patient Registration|Admission Form|Medical History|Referral Form|Health Questionnaire",
                (("Patient|Medical data|Clinical information", _MEDICAL), ("Contact data|Personal details", _PERSON),
                 ("Office use", _OFFICE))),
    "application": ("Application for Employment|Job Application|Residence Permit Application|Membership Application",
                    (("Applicant|Personal details", _PERSON), ("Position|Career|Education and experience", _APPLY),
                     ("Present employment", _WORK), ("Office use only", _OFFICE))),
    "loan": ("Loan Application|Credit Request|Account Opening Form|Mortgage Enquiry|Financing Request",
             (("Applicant|Borrower", _PERSON), ("Loan details|Financing|Your request", _LOAN), ("Employment", _WORK))),
    "booking": ("Registration Card|Hotel Registration|Booking Form|Event Registration|Travel Request",
                (("Guest|Traveller", _PERSON), ("Stay|Trip details|Booking", _EVENT), ("Employer", _WORK))),
}  # fmt: skip
ISSUED = {
    "tax": ("Tax Administration", "Department of Finance", "Revenue Service", "Cantonal Tax Office"),
    "insurance": ("General Insurance Company", "Mutual Insurance Ltd", "Harbour Insurance", "Alpine Assurance"),
    "customs": ("Customs Authority", "Federal Customs Office", "Chamber of Commerce", "Border Agency"),
    "medical": ("Regional Hospital", "St. Mary Clinic", "University Hospital", "City Medical Centre"),
    "application": ("Human Resources", "Office for Migration", "Recruitment Services", "City Administration"),
    "loan": ("Savings Bank", "First National Bank", "Credit Union", "Commerce Bank"),
    "booking": ("Grand Hotel", "Lake Resort", "Conference Office", "Travel Desk"),
}
_YES_NO = ("Yes", "No")
CHOICES = {
    "": (("Gender", ("Female", "Male", "Other")), ("Title", ("Mr", "Ms", "Dr", "Prof")),
         ("Preferred contact", ("Phone", "E-mail", "Post")), ("Residence", ("Owner", "Tenant", "With family")),
         ("Correspondence language", ("English", "German", "French", "Italian")),
         ("Type of request", ("New", "Change", "Renewal", "Cancellation"))),
    "tax": (("Filing status", ("Single", "Joint", "Separate")), ("First return", _YES_NO), ("Church tax", _YES_NO)),
    "insurance": (("Third parties involved", _YES_NO), ("Previous claims", _YES_NO), ("Injuries", ("None", "Minor",
        "Severe")),
                  ("Payment", ("Monthly", "Quarterly", "Yearly"))),
    "customs": (("Shipment type", ("Sale", "Gift", "Sample", "Return")), ("Dangerous goods", _YES_NO)),
    "medical": (("Smoker", _YES_NO), ("Visit", ("First", "Follow-up", "Emergency")), ("Pregnant", _YES_NO)),
    "application": (("Workload", ("Full time", "Part time", "By the hour")), ("Driving licence held", _YES_NO)),
    "loan": (("Account", ("Current", "Savings", "Deposit")), ("Employment type", ("Employed", "Self-employed",
        "Retired"))),
    "booking": (("Breakfast", _YES_NO), ("Room type", ("Single", "Double", "Suite")), ("Parking", _YES_NO)),
}  # fmt: skip


def _terms(text: str) -> list[Term]:
    """The fields of a section."""
    rows = [row.split("=") for row in text.splitlines()]
    return [
        Term(kind, tuple(labels.split("|")), tuple(asks[0].split("/")) if asks else ()) for labels, kind, *asks in rows
    ]


FORMS = {
    subject: (titles.split("|"), [(heads.split("|"), _terms(text)) for heads, text in sections])
    for subject, (titles, sections) in _FORMS.items()
}
