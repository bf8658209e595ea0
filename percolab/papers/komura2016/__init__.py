"""Komura 2016: its figures, and the labelers that it is compared with.

The four steps themselves are the default of graphs (:mod:`percolab.labelers.four_step`).
"""
