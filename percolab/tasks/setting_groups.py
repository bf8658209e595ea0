"""What settings are about: the help of a long command lists its options in these groups."""

LATTICE = "Lattice and graph"
WHAT = "What is sampled"
HOW_MUCH = "How much"
MEASURED = "What is measured"
SPINS = "Spins"
MACHINE = "Machine"
OUTPUT = "Output"
#: All of them, in the order of the help.
GROUPS = (LATTICE, WHAT, HOW_MUCH, MEASURED, SPINS, MACHINE, OUTPUT)
