"""``python -m percolab`` is the command line."""

from percolab.cli import main

main()
