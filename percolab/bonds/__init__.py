"""Which bonds are open: keyed random numbers compared with p, packed 32 to a word."""
