"""Pilots: they look for the p or the burn-in of a study, by a few samples of their own."""
