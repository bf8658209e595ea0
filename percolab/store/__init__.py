"""The results file: HDF5, written whole, guarded when read, merged."""
