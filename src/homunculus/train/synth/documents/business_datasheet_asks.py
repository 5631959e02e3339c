"""Free questions for the properties of data sheets, as in business_form_asks, and for the product and its maker."""

from __future__ import annotations

PRODUCT = (
    "What is the name of the [product|device|model]?", "Which [product|model|device] is [this|described][| here]?",
    "What product is the {doc} about?", "What is the [product|device] called?", "name of the product",
    "For which [product|device] [is|was] [this|the] {doc} made?", "Whose technical data are these, of which product?",
    "What do they describe here?", "To which product does the {doc} belong?", "Which article do the figures describe?",
    "I have a stack of these: which product is this one about?", "Name the product[| described here].",
    "Under what name is [it|the product] sold?", "[Which|What] device do these data belong to?",
    "Find the name of the [product|device].", "What thing is this {doc} for?", "product described here",
)  # fmt: skip
MAKER = (
    "Who [makes|manufactures|produces] [it|this|the product]?", "Which company makes the [product|device]?",
    "Who is the manufacturer?", "Who is behind this product?", "Which firm [builds|produces] [it|this device]?",
    "What is the name of the [maker|manufacturer|producer]?", "maker of the product", "Who made [this|the] thing?",
    "From which [company|firm|brand] is [it|the product|the device]?", "By [which company|whom] is it [made|built]?",
    "Whose product is it?", "Which brand is [it|the product] of?", "I need the maker for a complaint: who is it?",
    "Name the company that makes it.", "Find the manufacturer.", "company that builds it",
)  # fmt: skip
PROPERTIES = """# Model
What is the [model|type] called?/Which version of the product is [it|this]?/model of the device
By what type name does it go?/I have two of these at home: which model is this one?
Which model does the sheet describe, by its code?
# Article number
Under which number can it be ordered?/With what code do I order it?/number to order it by
What do I type into the order form for this product?/Which article number does the product have?
I want to buy this one: what is its item number?
# Colour
What colour is it?/[Which|In which] color does it come?/color of the housing
What does it look like, which colour?/How is the housing finished?/Is it black, white or something else?
# Warranty
How long is the warranty?/For how long is it guaranteed?/time of guarantee
How long do I have if it breaks, under warranty?/How many years or months does the maker guarantee?
Until how long after purchase is a repair free?
# Country of origin
Where is it made?/In [which|what] country is it [made|built|produced]?/made in which country
Which country does the product come from?/Where do they manufacture it?/What is its country of manufacture?
# EAN
What is the number of the barcode?/Which [barcode|EAN] does it have?/number below the barcode
What does the shop scan at the till?/Which number would the scanner read?/By what GTIN is it known in shops?
# Certifications
Which [approvals|marks of conformity] does it have?/With which standards does it comply?/approved by whom
Is it certified, and how?/What certificates does the product bear?/Which test marks does it carry?
# Release date
When was it released?/Since when [is|has been] it on the market?/When did it come [out|onto the market]?
From which date on could one buy it?/date it came out/When did they launch it?
# Width
How wide is it?/How broad is the device?/width of the device/What does it measure from left to right?
Does it fit into my gap: how wide is the product?/How much room does it need sideways?
# Height
How [high|tall] is it?/How tall is the device?/What does it measure from bottom to top?
How much room does it need upwards?/how high it stands/To fit it under a shelf: how tall is the product?
# Depth
How [deep|long] is it?/How deep is the device?/What does it measure from front to back?
How far does it reach from front to back?/size from front to back/How much space is needed behind its front?
# Net weight
How heavy is it?/How much does it weigh?/What is the weight of the bare device?/weight without packaging
What does it weigh [without the box|unpacked]?/Can I lift it: how heavy is the device itself?
# Shipping weight
How heavy is the packed product?/How much does it weigh [in its box|when packed]?/weight with packaging
What does the parcel weigh?/How heavy is it with its packing?/How much weight does the carrier have to bring?
# Packaging size
How large is the [box|package|carton]?/What are the outer measures of the carton?/size of the box it comes in
What size is the parcel?/How long, wide and high is the packing?/Which dimensions does the packed product have?
# Pieces per carton
How many pieces are in [a|one] carton?/How many come in one box?/number in one box
How many of them are packed together?/What is the count of pieces in each box?/By how many are they packed?
# Operating voltage
At what voltage does it [run|work]?/How many volts does it need?/volts it needs
Which voltage must the supply have?/What voltage do I have to connect?/With how many volts is it fed?
# Rated power
How [much power does it have|powerful is it]?/What output is it rated for?/rated output in watts
For how many watts is it built?/What is its nominal output?/How strong is it, in watts by its rating?
# Power consumption
How much power does it [use|draw|need]?/How much electricity does it use while running?/electricity it uses
How many watts does it take from the mains?/What does it draw when it is on?/How thirsty for power is it?
# Frequency
At how many hertz does it run?/Which mains frequency does it need?/hertz of the mains
For what frequency of current is it built?/How many hertz must the mains have?/Is it for 50 or 60 hertz?
# Rated current
How many amps does it draw?/What current does it take?/amps it takes
How strong is the current through it?/What fuse would it need: how many amperes flow?/How many ampere is it rated at?
# Standby power
How much power does it use in standby?/What does it use when it is switched off but plugged in?/watts when idle
How many watts does it draw while idle?/What does it use while waiting?/How much power is drawn when asleep?
# Protection class
How well is it protected against dust and water?/Which IP class does it have?/protection from water and dust
May it get wet, what is the protection?/What degree of protection does the housing give?
Can I put it outdoors: which IP code?
# Battery capacity
How [large|big] is the battery?/How much energy does the battery hold?/size of the battery
How much charge can the battery store?/What does a full battery contain?/How strong is the built-in battery?
# Charging time
How long does charging take?/How soon is the battery full?/time until the battery is full
How many hours must it be plugged in to be full?/How long do I have to charge it?/When is it fully charged again?
# Cable length
How long is the cable?/How far does the cord reach?/length of the cord
How far from the socket can it stand?/How much cable does it come with?/How many metres of cord are there?
# Operating temperature
At what temperatures can it be used?/How [hot|cold] may it get where it is used?/temperature while in use
Between which temperatures does it work?/What ambient temperature is allowed in use?
Can I run it in the cold: in which range of degrees?
# Storage temperature
At what temperature should it be stored?/How cold or hot may it be while in store?/temperature when stored
Between which temperatures may it be kept when unused?/How warm may the warehouse be?
In which range of degrees can it be put away?
# Relative humidity
How [humid|damp] may the air be?/What humidity is allowed?/dampness of the air allowed
How much moisture of the air does it stand?/In which range must the humidity be?
Can it stay in the bathroom: how humid may the air be?
# Noise level
How loud is it?/How much noise does it make?/noise it makes
How many decibels does it make?/Is it quiet, what was measured?/What sound level does it reach?
# Altitude
How high above the sea can it be used?/Up to [which|what] altitude does it work?/highest place it can be used
How far up in the mountains may it run?/How many metres above sea level are allowed?
May I run it in the Alps: up to what altitude?
# Service life
How long does it last?/How long will it [live|work] before it is worn out?/time until it wears out
What life is expected of it?/After how long should I expect to replace the whole thing?
For how long can one count on it?
# Maintenance interval
How often must it be serviced?/How often does it need maintenance?/time between two services
When is the next service due, after how long?/After what time must the technician come?
How frequently does it have to be looked after?
# Maximum speed
How fast is it?/How fast can it go[| at most]?/highest speed it reaches
What speed does it reach?/What is the quickest that it can run?/Up to what speed does it go?
# Flow rate
How much flows through it?/How much can it pump in a given time?/amount that flows through
How much does it deliver in a given time?/How strong is the flow?/What volume goes through per unit of time?
# Maximum pressure
How much pressure does it [stand|withstand]?/Up to [which|what] pressure can it be used?/pressure it stands
How high may the pressure be?/What pressure must not be exceeded?/When would it burst: what is the limit in pressure?
# Accuracy
How [accurate|exact|precise] is it?/How large is the error when measuring?/how exact it measures
By how much can a reading be off?/How far may one trust its measurements?/What deviation is possible?
# Efficiency
How efficient is it?/How much of the energy is put to use?/share of energy that is used
How many percent of the energy are not lost?/What share of the input comes out as work?
How well does it turn energy into work?
# Capacity
How much does it hold?/How much fits [in|inside]?/how much fits inside
What volume can be filled in?/How much liquid goes into the tank?/How much can I pour in before it is full?
# Load capacity
How much can it carry?/How much weight can be put on it?/weight it can carry
What load does it bear?/How heavy may the things on it be?/How many kilos does it take before it breaks?
# Resolution
How many pixels does the [image|display] have?/How sharp is the picture, in pixels?/pixels of the picture
How many dots wide and high is the image?/How fine is the picture?/What is the pixel count?
# Memory
How much memory does it have?/How much working memory is built in?/size of the ram
How many gigabytes of RAM are there?/Is there enough RAM, how much?/What amount of main memory was put in?
# Storage
How much space for files is there?/How large is the [disk|drive]?/room for files
How much data can be kept on it?/How big is the built-in drive?/How many of my photos fit: what is the disk size?
# Display
How large is the screen?/How big is the display?/size of the display
What kind of screen does it have?/How many inches is the screen?/What do I look at: which screen is built in?
# Connections
What can be plugged in?/Which [ports|sockets] does it have?/sockets for plugs
To what can it be connected by cable?/Which plugs fit into it?/How do I connect it to my PC?
# Wireless
Which wireless standard does it [use|support]?/How does it connect without a cable?/connection without cable
By what radio does it communicate?/Does it have Wi-Fi, Bluetooth or the like?/What works over the air?
# Protocol
Which [bus|protocol] does it [speak|use]?/By which protocol does it talk to other devices?/language on the bus
Over what bus is it controlled?/How does it talk to the building control, by which protocol?
In which protocol does it exchange data?
# Operating system
Which system does it run[| on]?/What software platform is it built on?/system that runs on it
Does it run Linux, Android or something else?/What OS is on it?/Which operating software is installed?
# List price
How much does it cost?/What is the price?/How expensive is it?/cost of the product
What does the maker want for it?/What would I have to pay for one?/I want to buy it: for how much?
# Delivery time
How long does delivery take?/How soon [can|do] I get it?/time until it is delivered
After ordering, how long do I wait?/When would it arrive if ordered now?/Within what time is it available?
# Minimum order
How many must be ordered at least?/What is the smallest order?/fewest pieces one can order
How many do I have to take at least?/May I order just one, what is the minimum?
Below which number do they not accept an order?
# Accessories included
What comes with it?/What is included?/things in the box
What else is in the box?/Which accessories do I get with it?/What do they deliver along with the product?
# Spare part no.
Under which number do I get a spare part?/What is the number of the replacement part?/number of the spare part
If something breaks, which part number do I order?/Which code does the spare have?
Which part do I ask for when it wears out?"""
