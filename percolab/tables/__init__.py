"""Stored results as flat tables: CSV, Parquet, pandas, xarray."""
