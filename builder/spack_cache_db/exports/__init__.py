"""A database as a folder of Parquet or CSV files, with descriptions for machines."""
