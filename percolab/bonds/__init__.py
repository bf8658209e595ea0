"""The open bonds of samples: keyed random numbers compared with p, packed 32 to a word."""
