/// The words of `generate --words`: 2048 common English words of 3 to 7 letters. No word is the beginning of another,
/// so that different sequences of words never form the same phrase, even without a separator.
enum WordList {
  static func words() -> [[UInt8]] {
    text.utf8.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") }.map { Array($0) }
  }

  private static let text = """
    abacus able abound above abroad absent absorb accent accept access accord account acid acorn acre across action
    active actor adapt add adept adjust admire adopt adult advice aerial affair affirm afford afloat again agency agile
    agree ahead air ajar alarm album alert alias alibi align alike alive alley allow alloy almond almost alone along
    alpaca alpine alto always amaze amber amount ample amuse anchor angle animal ankle annex annual answer anvil apart
    apex apple apply apricot arcade arch arctic arena argue arid arise armada armor army aroma around arrive arrow art
    aside ask aspect assist assume aster athlete atlas atom attach attend attic auction august aunt author autumn avenue
    avoid awake award aware axis azure bacon badger baffle bagel bakery balcony ballad balloon ballot bamboo banana band
    banjo banner barber barley barn barrel basalt basic basil basin basket batch bath baton bay bazaar beach beacon
    beagle beaker beam bean bear beast beat beckon become bed beech begin behave behind behold beige belief bell belong
    below belt bench bend benefit beret berry beside best better beyond big bike bind birch bird bit blade blanket
    blazer blend bless blink bliss block blonde bloom blossom blouse bluff boat bobbin body bold bolt bond bone bonfire
    bonnet bonus book boot borrow both bottle bottom bounce bounty bow box bracket branch brass brave bread breeze brick
    bridge brief bright brim bring brisk broad bronze brook broom brother brown brush bubble bucket buckle budget
    buffalo build bulb bundle bunny burger bush busy butter button buy buzz cabin cable cacao cactus cadet cafe cage
    cake calcium calf call calm camel camera camp canal canary candle cane canoe canopy canyon capable cape captain
    caravan carbon card cargo carol carpet carrot carry cart carve case cask castle casual catalog catch cattle cave
    cedar celery cello cement center ceramic certain chain chair chalk champ chance change charge chart chase check
    cheer cheese chef cherry chess chest chew chief child chill chimney chin chip choice choose chorus chunk cider
    cinema circle citrus city civic civil claim clam clap class clay clean clear clerk clever cliff climate clinic clip
    cloak clock close cloth cloud clover club clue coach coal coast coat cobweb cocoa coconut coffee coin cold collect
    color column comb comet comfort comic common compass concert condor conduct cone consult convoy cook cool copper
    copy coral corn cosmic cost cotton couch count couple cousin cover cozy crab cradle craft crane crater crayon cream
    credit creek crest crew cricket crimson crisp critic crop cross crowd crown cruise crumb crust crystal cube cuckoo
    cuddle cup curb cure curious curl curry curtain curve custom cut cycle daily dairy daisy dance daring dart dash data
    date dawn day daze deal debate debut decade decent decide declare decor deep defend define degree delay delight
    deliver delta demand denim dense dent depart depend depot depth derive design desire desk detail detect develop
    device devote dew diagram dial diary dice diesel diet differ digest digit dilute dimple dine dinner direct disco
    dish ditch ditto dive divide dizzy doctor dodge dollar domain dome donate donkey door dose dot double dove down
    dozen draft dragon drama draw dream dress drift drill drink drive drizzle drone drop drum dry duck duet dull durable
    dust duty dwell each eager eagle early earn earth east easy eat echo eclipse ecology edge edit educate effort egg
    eight either elbow elder elect elegant elk else embark ember emblem embrace emerald emit employ empty enable enact
    encore endure energy engage engine enhance enjoy enough enrich enroll ensure enter entire entry epic episode equal
    equip erase errand escape escort essay estate evening event every evident evolve exact exceed excite exhale exist
    exit exotic expand expect expert export express extend extra eye fabric face factory fade faith falcon fall fame
    family famous fancy farm fashion fast father favor feast feather federal feed feel fellow felt fence fern ferry
    fertile fetch few fiber fiction fiddle field fifteen figure file fill film filter final find fine finger finish fire
    firm first fish five fix flag flame flare flash flat flavor fleece fleet flight flint flip float flock floor flora
    flow fluent fluff fluid flute fly foam focus fog foil fold folk follow fondue food forest forge fork form fort forum
    forward fossil foster found fox frame freckle free freight fresh friend frog front frost frozen fruit fudge fuel
    full funnel fur future fuzzy gadget gain galaxy game garage garden garlic gather gauge gear gem genius gentle
    genuine geology get geyser giant gift ginger giraffe give glad glance glass glaze gleam glide glimmer glitter globe
    glory glossy glove glow glue goal goat gold golf good goose gorge gossip govern gown grace grade grain grand grape
    graph grass gravel gravy gray grease green greet grid grill grin grip grizzly grocer groove ground group grove grow
    guard guess guest guide guitar gulf gym gypsum habit half hall halo halt hammer hammock hand hang happen happy
    harbor harp hatch haul haven hawk hay hazel head health heap heart heavy hedge height helium helmet help hen herb
    herd hermit hidden high hike hill hinge hint hip hire history hive hobby hockey hold hollow holly home honest honey
    honor hood hoof hook hoop hope horn horse host hotel house hover howl huddle hue hug human humble humid humor
    hundred hurdle hurry husky hut hybrid hyphen ice icicle icon ideal igloo image imagine import improve inch income
    indeed index indoor inform inhale ink inland inlet inn input inquire insect inside intact intend into invent invite
    inward iris iron island issue ivory ivy jackal jacket jade jaguar jam jar jasmine java jaw jazz jeans jelly jersey
    jet jewel jigsaw job jog join joke jolly journal joy judge juggle juice jumble jump jungle junior jury just kale
    kayak keen keep kennel kernel kettle key kick kidney kilt kind king kiosk kite kitten kiwi knack knee knife knit
    knob knock know koala label labor lace ladder lady lagoon lake lamb lamp lance land lane large lark laser last latch
    later laugh launch laurel lava lawn layer lazy leaf league lean leap learn ledge leek left legacy legend lemon lend
    length lens leopard letter lettuce level lever library lid life lift light like lilac lily lime limit line linger
    lion lip liquid list little live lizard llama load lobby lobster local lock locust lodge loft logic long look loop
    lotion loud lounge love low loyal lucid luck lumber lunar lunch luxury lyric magenta magic magnet major make mammal
    manage mango mansion mantle manual many maple marble march margin marina market marsh marvel mascot mask match math
    matrix matter mature maybe mayor meadow meal mean measure medium melody melon member memo mend mental mentor menu
    merge merit merry mesh meteor method metro midday middle might mild mile milk mill mimic mineral mint minute mirror
    misty mitten mix mobile model modern modest modify moist mole moment monarch money monitor month mood moon moose
    moral more morning mosaic moss most motel moth motion motor mound mount mouse mouth move movie much mud muffin mug
    mule multi muscle museum music muzzle myrtle mystery myth name napkin narrow nation natural navy near neat nectar
    needle neither neon nerve nest network neutral never new next nibble nice nickel night nimble nine noble nod noise
    noodle noon north nose note nothing notice novel now number nursery nutmeg oak oasis oat obey object obtain obvious
    ocean octagon odd odor offer office often oil okay old olive omega onion only onset onward opal open opera option
    orange orbit order organ origin ornate other otter ounce outfit outline oval oven over owl own oxygen oyster ozone
    pacific pack paddle page paint palace palm pancake panda panel paper parade parcel parent parka parlor parrot
    parsley partner party pass pasta pastry patch path patio patrol pave paw pay peach peak peanut pebble peel penguin
    people pepper perform permit person phone photo phrase piano pick picnic pier pigeon pile pillar pilot pine pink
    pint pioneer pipe pixel pizza place plan plate play plaza please plenty plot plow plug plum plural pocket poem poet
    point polar policy polite pollen pond pony pool popcorn poppy portal pose postage potato pouch pound powder power
    praise precise prefer present pretty pretzel print prism prize problem produce profile program promise proof proper
    proud provide prudent public pudding puddle pull pulp pulse puma pump punch pupil puppet pure purple purpose purse
    push puzzle quail quality quart queen quench query quest quick quiet quilt quit quiz quota quote rabbit race rack
    radar radio raft rail rainbow raisin rally ramp ranch random range rapid rare rather raven raw razor reach react
    ready real reason recall receive recipe record recruit reduce reef refer refine refresh regal regard region relate
    relax release rely remain remark remedy remind remote remove render renew rent repair repeat reply report request
    rescue resist rest result resume retail retire return reunion reveal revenue review revise reward rhythm ribbon rice
    rich riddle ride ridge rigid rinse ripe ripple rise river road roam robin robot robust rocket rodeo roll roof room
    rope rose rotate round rover row royal rubber ruby rudder ruin rule rumba runway rural rush sable saddle safari safe
    saga sage salad salmon salon salt salute same sample sandal satisfy saucer sauna save savor say scale scan school
    science scold scoop scope score scout screen script scroll scrub search season seat second section secure seed seek
    seem select self seller senior sense sentry sequel serene series serve settle seven several shade shadow shake shape
    share shark sharp shed sheep sheet shelf shell shield shift shine ship shirt shoe shop shore short should shout
    shovel show shrimp shut shy side sift sigh sign silence silk silver simmer simple sincere sing sink sip sister six
    size skate sketch skill skin skip skirt sky sleek sleep sleeve slice slide slim slogan slope slot slow small smart
    smile smoke smooth snack snail snap snow snug soap soccer social sock soda sofa soft soil solar sold solid solo
    solve some sonata song soon soothe sort sound soup source south space spade spark sparrow speak speech speed spell
    spend sphere spice spider spike spin spiral spirit splash spoke spoon sport spot spray spread spring spruce spur
    square squash squid stable stadium staff stage stamp stand staple star state station stay steady steam stem step
    stereo stick still stir stitch stock stone stop store storm story stove strand straw stream street stride string
    stripe strong study sturdy style submit subway succeed such sudden suffix sugar suggest suit summer summit sunny
    super supper supply sure surf surplus survey swan swap swarm sway sweet swift swim swing switch sword symbol symptom
    syrup system tablet tactic tag tailor take talent talk tall tango tank tape target task taste taxi teach teapot
    tease tell tempo tender tennis tent term test text thank that theater theme then theory there thick thing think
    third thirty thorn thought thread three thrive throat thumb thunder tiara ticket tidy tie tiger tile tinsel tiny tip
    tissue title toad toast today toddler toffee tomato tone tongue tool tooth topic torch tornado total toucan touch
    tour toward towel tower town toy trace track trade traffic trail train trait tram transit travel tray treat tree
    trend trick trim trio trip trophy tropic trot trout truck true trumpet trunk trust truth try tuba tube tulip tumble
    tuna tune tunic tunnel turbine turf turkey turn turtle tutor tweed tweezer twelve twenty twice twig twin twirl twist
    type typical unable uncle under unfold union unique unity unlock until unusual unwrap upbeat update uphill upland
    upon upper upright upset upward urban usage useful user usual utmost utter vacant valid valley valor value vanilla
    vapor variety vase vast vault veer vein velvet vendor venue verb verify verse vertex vessel vest victory video view
    village vinyl viola violet virtue visible vision visit visual vital vivid vocal voice volley volume vote vowel
    voyage wade wafer waffle wage wagon wake walk wallet walnut walrus waltz wander want warbler warm wash watch water
    wax wealth weave web wedding wedge welcome well west whale wharf wheat wheel when while whip white why wick wide
    width wiggle wild willow window wing winner winter wire wisdom wise wish with witty wizard wolf wonder wool word
    work world worth woven wrap wreath wrench wrist yacht yam yard yarn year yeast yellow yes yet yield yoga yogurt yolk
    young your zeal zebra zenith zero zest zigzag zipper zodiac zone zoom
    """
}
