"""Fields of printed forms by subject: labels = kind of value, with their questions from modules of their own."""

from __future__ import annotations

from homunculus.train.synth.documents import business_form_asks as people
from homunculus.train.synth.documents import business_subject_asks as matters
from homunculus.train.synth.documents.business_form_asks import read_asks
from homunculus.train.synth.documents.business_terms import Term

_PERSON = """Last name|Surname|Family name=last
First name|Given name|First names|Forename=first
Date of birth|Birth date|DOB|Born on=birth
Nationality|Citizenship|Citizen of=country
Street and number|Street|Home address|Address line 1=street_line
Postal code|ZIP code|Postcode|ZIP=postcode
City|Town|Place of residence|Municipality=city
Country|Country of residence=country
Phone|Telephone|Daytime phone|Mobile|Phone number=phone
E-mail|Email address|E-mail address=email
Marital status|Civil status=Single/Married/Divorced/Widowed/Separated
Place of birth|Born in|Birthplace=city
Occupation|Profession|Current job|Job title=job
Social security number|SSN|Insurance number|National ID no.=ssn"""
_WORK = """Employer|Name of employer|Company|Current employer=company
Employer's address|Business address|Work address=full_address
Employed since|Start of employment|Date of hire=date
Gross annual income|Yearly income|Annual salary=money
Working hours per week|Weekly hours|Hours per week=20/24/32/37.5/38.5/40/42
Department|Division|Cost centre=department
Supervisor|Line manager|Reports to=person"""
_OFFICE = """Case number|File no.|Case no.|Reference=code
Received on|Date received|Entry date=date
Processed by|Clerk|Case officer|Handled by=person
Approved on|Date of approval|Decision date=date
Office|Branch|Issuing office=city"""
_TAX = """Tax year|Year of assessment|Fiscal year=2017/2018/2019/2020/2021/2022/2023/2024/2025
Taxpayer ID|Tax number|TIN|Tax file no.=vat
Wages and salaries|Employment income|Wages, tips=money
Interest income|Taxable interest|Interest received=money
Dividends|Ordinary dividends|Dividend income=money
Rental income|Income from rent=money
Deductible expenses|Itemized deductions|Allowable deductions=money
Taxable income|Income subject to tax=money
Tax withheld|Federal tax withheld|Tax already paid=money
Refund|Amount to be refunded|Overpayment=money
Tax payable|Amount you owe|Tax due=money
Number of dependants|Dependants|Children in household=count"""
_INSURANCE = """Policy number|Policy no.|Insurance policy=code
Claim number|Claim no.|Claim reference=code
Insured person|Policyholder|Name of insured=person
Date of loss|Date of accident|Date of incident=date
Place of accident|Location of loss|Scene of accident=full_address
Amount claimed|Claim amount|Estimated damage=money
Deductible|Excess|Own share=money
Sum insured|Insured value|Coverage amount=money
Annual premium|Premium per year|Yearly premium=money
Start of cover|Cover from|Effective date=date
End of cover|Cover to|Policy expires=date
Type of insurance|Line of business|Cover type=Household/Motor/Liability/Travel/Health/Life/Legal protection
Licence plate|Registration plate|Plate no.=code
Vehicle make and model|Make of vehicle=VW Golf/Toyota Corolla/Ford Focus/Volvo V60/Skoda Octavia/Honda Civic
Police report no.|Police file number=code"""
_CUSTOMS = """Consignor|Exporter|Sender=company
Consignee|Importer|Recipient of goods=company
Country of origin|Origin=country
Country of destination|Destination=country
Tariff number|HS code|Commodity code=number
Description of goods|Goods|Contents=product
Gross weight|Gross mass|Weight gross (kg)=weight
Net weight|Net mass|Weight net (kg)=weight
Number of packages|Packages|Total packages=count
Customs value|Declared value|Statistical value=money
Invoice currency|Currency=USD/EUR/GBP/CHF/JPY/SEK
Place of loading|Port of loading|Loaded at=city
Place of delivery|Port of discharge|Delivered at=city
Means of transport|Mode of transport|Transport=Road/Rail/Sea/Air/Post
Container no.|Container number=code
Declaration no.|MRN|Customs reference=code
Customs office|Office of exit=city
Terms of delivery|Incoterms=EXW/FOB/DAP/DDP/CIF/FCA"""
_MEDICAL = """Patient name|Name of patient|Patient=person
Patient ID|Patient number|Medical record no.=number
Referring doctor|Attending physician|Family doctor=person
Health insurer|Insurance company|Name of insurer=company
Insurance card no.|Member ID|Insured no.=number
Blood group|Blood type=A+/A-/B+/0+/0-/AB+
Height (cm)|Body height=158/163/167/171/174/178/182/186
Weight (kg)|Body weight=52/58/61/67/72/76/81/88/94
Allergies|Known allergies=None/Penicillin/Pollen/Latex/Nuts/Aspirin
Current medication|Medication|Medicines taken=None/Ibuprofen 400 mg/Metformin 500 mg/Ramipril 5 mg/Aspirin 100 mg
Diagnosis|Main diagnosis|Finding=Hypertension/Asthma/Fracture of wrist/Migraine/Type 2 diabetes/Bronchitis
Date of admission|Admitted on|Date of visit=date
Date of discharge|Discharged on=date
Ward|Station|Unit=department
Blood pressure|BP (mmHg)=pressure
Emergency contact|In case of emergency notify|Next of kin=person"""
_APPLY = """Position applied for|Desired position|Job applied for=job
Available from|Earliest start date|Possible start=date
Expected salary|Salary requirement|Desired salary=money
Highest degree|Education|Qualification=Bachelor/Master/Diploma/PhD/High school/Apprenticeship
Institution|School|University=company
Years of experience|Experience (years)=count
Notice period|Period of notice=1 month/2 months/3 months/4 weeks/none
Languages|Language skills=English/German, French/English, Spanish/Italian/Swedish, English
Driving licence|Driver's license class=B/A, B/C1/none
Permit type|Work permit|Residence permit=B/C/L/G/none"""
_LOAN = """Amount requested|Loan amount|Credit requested=money
Purpose of loan|Loan purpose|Use of funds=Car/Renovation/Education/Debt consolidation/Business start-up
Term (months)|Loan term|Repayment period=12/24/36/48/60/72/84
Monthly instalment|Monthly payment|Monthly rate=money
Interest rate|Rate p.a.|Annual interest=rate
Account number|Bank account|Account for payment=account
IBAN|IBAN of applicant=iban
Monthly rent|Rent per month|Housing costs=money
Other debts|Existing loans|Other liabilities=money
Guarantor|Surety|Co-signer=person"""
_EVENT = """Arrival date|Check-in|Date of arrival=date
Departure date|Check-out|Date of departure=date
Room number|Room=count
Number of guests|Guests|Persons=count
Booking reference|Confirmation no.|Reservation code=code
Passport number|Passport no.|ID document no.=code
Flight number|Flight|Arriving flight=LX 318/BA 712/LH 1184/UA 930/AF 1042
Rate per night|Room rate|Price per night=money"""

_ASKS = {
    _PERSON: people.PERSON, _WORK: people.WORK, _OFFICE: people.OFFICE, _APPLY: people.APPLY, _EVENT: people.EVENT,
    _TAX: matters.TAX, _INSURANCE: matters.INSURANCE, _CUSTOMS: matters.CUSTOMS, _MEDICAL: matters.MEDICAL,
    _LOAN: matters.LOAN,
}  # fmt: skip
WHO = {  # whom a form is about; patients and the insured have another full name on the page
    "tax": "[the taxpayer|the person]", "insurance": "[the customer|the person]", "customs": "the sender",
    "medical": "[this person|the person]", "application": "[the applicant|the candidate]",
    "loan": "[the applicant|the borrower]", "booking": "[the guest|the traveller]",
}  # fmt: skip

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


def _terms(text: str, who: str) -> list[Term]:
    """The fields of a section about a person."""
    asks, terms = read_asks(_ASKS[text], who), list[Term]()
    for row in text.splitlines():
        names, kind = row.split("=")
        labels = tuple(names.split("|"))
        terms.append(Term(kind, labels, asks[labels[0]]))
    return terms


FORMS = {
    subject: (titles.split("|"), [(heads.split("|"), _terms(text, WHO[subject])) for heads, text in sections])
    for subject, (titles, sections) in _FORMS.items()
}
