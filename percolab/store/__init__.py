"""The results file: kept, read and written in ``results``, laid out in ``hdf5_format``."""
