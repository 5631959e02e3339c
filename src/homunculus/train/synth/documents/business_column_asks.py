"""Questions about dense tables by what a column means: its rows and head, then what is asked."""

from __future__ import annotations

from homunculus.train.synth.documents.business_form_asks import read_asks

MEANT = read_asks("""# product: Article no.
Under which number do I order {row}?/What is the item number of {row}?/order code of {row}
Which code does {row} have in the list?/How is {row} coded?/What number identifies {row}?
# product: Pack size
How is {row} packed?/How much is in a pack of {row}?/pack size of {row}/In what pack does {row} come?
What does one package of {row} contain?
# product: Unit
By what unit is {row} sold?/In which unit is {row} counted?/{row} sold by the
What is {row} measured in?/Is {row} sold by piece, weight or what?
# product: List price
What does {row} cost before discount?/What is the official price of {row}?/full price of {row}
How much is {row} according to the list?/What would {row} cost without any rebate?
# product: Net price
What does {row} cost after discount?/What do we pay for {row} net?/price of {row} without the markup
How much is {row} net?/What is the price of {row} once everything is taken off?
# product: Stock
How many {row} are in stock?/How much of {row} is left in the warehouse?/stock of {row}/how many {row} left
How many of {row} do we have?/Is there enough {row}, how many are there?/How much {row} is on the shelves?
# product: Weight (kg)
How heavy is {row}?/How many kilos does {row} weigh?/weight of {row}/What does {row} weigh?
For the lorry: how heavy is {row}?
# product: Lead time (days)
How long does it take to get {row}?/In how many days can {row} be delivered?/days to deliver {row}
After how many days does {row} come?/If I order {row} today, how many days do I wait?
# product: Min. order
How many {row} must be ordered at least?/What is the smallest order of {row}?/fewest {row} one can order
At least how much of {row} do I have to take?/Can I order a single {row}, what is the minimum?
# product: VAT
At what rate is {row} taxed?/How much VAT is on {row}?/tax on {row}/What percentage of tax does {row} bear?
Which tax rate applies to {row}?
# product: Reorder level
At what stock must {row} be ordered again?/When do we have to buy more of {row}, at what stock?
At how many left is {row} ordered anew?/stock at which {row} is reordered/How low may {row} get before we reorder?
# region: Orders
How many orders came from {row}?/How many times did {row} order?/number of orders from {row}
How many orders were taken in {row}?/How busy was {row}, in orders?
# region: Revenue
How much was sold in {row}?/What did {row} bring in?/sales in {row}/How much money did we make in {row}?
What turnover did {row} have?/What did the customers in {row} spend with us?
# region: Returns
How many goods came back from {row}?/How many were sent back from {row}?/sent back from {row}
How many returns did {row} have?/In {row}, how many buyers gave it back?
# region: Growth
How much did {row} grow?/By how many percent did {row} grow?/growth in {row}/Did {row} grow or shrink, by how much?
How fast is business growing in {row}?
# region: Target
What should {row} reach?/Which goal was set for {row}?/goal for {row}/How much is {row} expected to sell?
What aim does {row} have?
# region: Share
What part of the whole does {row} have?/How large is {row}'s part of it all?/part that {row} makes up
How much of the total comes from {row}, as a share?/What share falls to {row}?
# region: Staff
How many people work in {row}?/How many employees does {row} have?/people working in {row}
How large is the team in {row}?/What is the headcount of {row}?
# region: Avg. order
How large is an order from {row} on average?/What is a typical order in {row} worth?/average order in {row}
What does the average customer in {row} order?/How much is the mean order of {row}?
# region: Last year
What did {row} reach a year before?/What was {row}'s figure the year before?/{row} one year ago
To compare with last year: what was it in {row} then?/How did {row} do last year?
# employee: ID
What is {row}'s staff number?/Under which code is {row} known?/staff code of {row}
By what ID is {row} kept?/What is the personnel number of {row}?
# employee: Department
Where in the company does {row} work?/Which department is {row} in?/{row} works in which team
To which division does {row} belong?/In what part of the firm do I find {row}?
# employee: Hours
How many hours did {row} work, overtime apart?/For how many regular hours is {row} paid?/regular hours of {row}
How many normal hours were counted for {row}?/How long did {row} work, without extra hours?
# employee: Overtime hours
How many extra hours did {row} do?/How long did {row} work over time?/extra hours of {row}
How much overtime does {row} have?/By how many hours did {row} work too long?
# employee: Rate
What does {row} earn per hour?/How much is one hour of {row} paid?/hourly pay of {row}
At what hourly rate is {row} paid?/What does an hour of {row} cost?
# employee: Gross pay
What does {row} earn before [tax|deductions]?/How much is {row}'s pay before anything is taken off?
pay of {row} before tax/What is {row}'s gross wage?/How much does {row} make gross?
# employee: Tax
How much tax does {row} pay?/What is taken off {row}'s pay for tax?/tax paid by {row}
How much of {row}'s pay goes to the state?/What was withheld from {row}?
# employee: Net pay
What does {row} take home?/How much is paid out to {row}?/take-home pay of {row}
How much does {row} get in hand?/What is left of {row}'s pay after deductions?/What reaches {row}'s bank account?
# employee: Days off
How many days was {row} away?/How many free days did {row} have?/holidays of {row}
How much time off does {row} have?/How many days did {row} not work?
# test: Result
What was [measured|found] for {row}?/How high is {row} now?/value measured for {row}
What did the lab find for {row}?/What came out of the test for {row}?/How much {row} was found this time?
# test: Unit
In what unit is {row} [measured|given]?/What is {row} measured in?/unit of {row}
Which unit belongs to the value of {row}?/The figure for {row} is in what?
# test: Reference range
What is normal for {row}?/Between which values should {row} be?/normal values of {row}
In which range is {row} healthy?/What do healthy people have for {row}?
# test: Method
How was {row} determined, by which method?/By which method was {row} measured?/method used for {row}
With what procedure did they find {row}?/Which test method was used on {row}?
# test: Flag
How is {row} flagged?/Is {row} marked as high or low?/mark at {row}/Which flag did {row} get?
Is something wrong with {row}, what is the flag?
# test: Previous result
What was {row} last time?/What had been measured for {row} before?/{row} in the test before
How high was {row} at the earlier test?/To compare: what was the former value of {row}?
# test: Limit
What value may {row} not exceed?/How high may {row} be at most?/highest value allowed for {row}
Where is the limit for {row}?/Up to what value is {row} allowed?
# destination: Zone
In which zone is {row}?/To what zone does {row} belong?/zone that {row} lies in
Which tariff zone is {row} in?/How is {row} zoned?
# destination: Distance (km)
How far is it to {row}?/How many kilometres away is {row}?/kilometers to {row}
How long is the way to {row}, in km?/How far does the lorry drive to {row}?
# destination: Transit days
How many days does it take to {row}?/How long is a parcel on the way to {row}?/days on the way to {row}
After how many days does it reach {row}?/If sent to {row}, how many days until it arrives?
# destination: Up to 5 kg
What does a parcel of 4 kg to {row} cost?/How much is a small parcel to {row}?/price to {row} for 3 kg
I send 2 kg to {row}: what do I pay?/What is the rate to {row} for parcels of at most 5 kg?
# destination: Up to 20 kg
What does a parcel of 15 kg to {row} cost?/How much is it to send 12 kg to {row}?/price to {row} for 18 kg
I send 10 kg to {row}: what do I pay?/What is the rate to {row} for parcels of at most 20 kg?
# destination: Per extra kg
What does each further kilo to {row} cost?/How much more is one kilo extra to {row}?/each added kilo to {row}
If it is too heavy, what do I pay per kilo to {row}?/By how much does a kilo more raise the price to {row}?
# destination: Surcharge
What is added for {row}?/How much extra is charged for {row}?/extra charge to {row}
Which supplement applies to {row}?/What must be paid on top for {row}?
# destination: Code
What code does {row} have?/How is {row} coded?/code for {row}/Which code stands for {row}?
What do I write on the label for {row}, which code?
# company: Customer no.
Under which number is {row} kept?/What is {row}'s client number?/client number of {row}
By which number do we know {row}?/How is {row} numbered as a customer?
# company: Invoices
How many bills does {row} have open?/How many invoices went to {row}?/number of bills of {row}
What is the count of invoices for {row}?/How many bills is {row} listed with?
# company: Current
How much does {row} owe that is not late yet?/What does {row} owe that is not yet overdue?/not yet due from {row}
Which amount of {row} is still in time?/What is {row}'s debt inside the payment term?
# company: 1-30 days
How much of {row}'s debt is late by up to a month?/What is {row} late with by 30 days at most?
{row} late by less than a month/Which amount of {row} has been overdue for one to thirty days?
What does {row} owe that is late by two weeks or so?
# company: 31-60 days
How much of {row}'s debt is late by one to two months?/What is {row} late with by 31 to 60 days?
{row} late by about six weeks/With what sum has {row} been late for some six weeks?
Which amount of {row} has been overdue for more than a month but not over two?
# company: Over 90 days
How much of {row}'s debt is late by more than three months?/What has {row} not paid for over 90 days?
{row} late by over three months/Which amount of {row} has been overdue the longest?
What may we never see from {row}, overdue for more than 90 days?
# company: Total due
How much does {row} owe in all?/What does {row} owe us altogether?/all that {row} owes
How much must {row} still pay altogether?/How high are {row}'s debts, old and new together?
# company: Credit limit
Up to what sum may {row} buy on credit?/How much credit does {row} get at most?/most that {row} may owe
How far may {row} go into debt with us?/Where is the ceiling of {row}'s credit?
# department: Budget
How much was {row} allowed to spend?/What was planned for {row}?/money planned for {row}
How much money was set aside for {row}?/What sum did {row} get in the plan?
# department: Actual
How much did {row} really spend?/What did {row} spend in the end?/really spent by {row}
How much did {row} use up in fact?/What did {row} come to in reality?
# department: Variance
How far is {row} from its plan?/By how much did {row} miss its budget?/gap between plan and result of {row}
What is the difference between plan and result for {row}?/How big is the deviation of {row}?
# department: Staff
How many people work in {row}?/How many employees does {row} have?/people in {row}
How large is the team of {row}?/What is the headcount of {row}?
# department: Costs per head
What does one employee of {row} cost?/How much is spent in {row} for each person?/cost of one person in {row}
Per member of staff, what does {row} cost?/What is {row}'s cost for each employee?
# department: Prior year
What was it for {row} the year before?/How much did {row} have last year?/{row} one year earlier
What figure did {row} show in the year before?/To compare with the past: what was {row}'s figure a year ago?
# department: Change
By how much did {row} change?/Did {row} go up or down, by how much?/how {row} changed
How did {row} change against the year before?/What is the rise or fall of {row}?
# department: Forecast
What is {row} expected to reach?/What do they predict for {row}?/what is predicted for {row}
How will {row} end up, as they expect?/What is the outlook for {row}, as a figure?
# fund: Currency
In what money is {row} [kept|traded]?/Which currency is {row} in?/the money {row} is in
In which currency would I buy {row}?/What money do I need for {row}?
# fund: NAV
What is one share of {row} worth?/What is the net asset value of {row}?/value of one unit of {row}
How much is a unit of {row}?/At what value per share does {row} stand?
# fund: 1 month
How did {row} do over the last month?/What did {row} gain or lose in a month?/{row} over one month
What was the return of {row} over one month?/By how much did {row} move within a month?
# fund: 1 year
How did {row} do over the last twelve months?/What did {row} gain or lose in a year?/{row} over one year
What was the return of {row} over one year?/If I had bought {row} a year ago, what would I have made?
# fund: 3 years
How did {row} do over three years?/What did {row} gain or lose in 3 years?/{row} over three years
What was the return of {row} over three years?/By how much did {row} move within three years?
# fund: 5 years
How did {row} do over five years?/What did {row} gain or lose in 5 years?/{row} over five years
What was the return of {row} in the long run of five years?/By how much did {row} move within five years?
# fund: Fees
How much does {row} charge?/What does it cost to hold {row}?/cost of holding {row}
What do I pay the managers of {row}?/How expensive is {row} to own?
# fund: Risk
How risky is {row}?/What is the risk class of {row}?/risk of {row}/How safe is {row}, by its class?
On which risk level is {row}?
# fund: Assets (m)
How large is {row}?/How many millions are in {row}?/millions invested in {row}
How much money does {row} manage?/What is the size of {row}, in millions?
""")  # fmt: skip
