"""What several kinds of study refuse, in the words of :attr:`percolab.tasks.kind.Kind.refusals`."""

OPENS_IN_ORDER = "method {method} opens the bonds of a whole sample in order; give p"
NO_FUNCTIONS = (
    "functions of labels are measured in percolation by method grid, not of method {method}"
)
