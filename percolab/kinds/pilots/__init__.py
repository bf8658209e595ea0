"""Pilots: they look for the p or the burn-in of a study, with a few separate samples."""
