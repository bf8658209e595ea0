"""The kinds of study, one file each: what its tasks refuse, store and measure, and how.

A kind is found by its name in :mod:`percolab.tasks.kind_registry`, and is loaded when a study of it
is made; :class:`percolab.tasks.kind.Kind` says what it consists of.
"""
