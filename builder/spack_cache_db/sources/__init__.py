"""What can be read: units of input, their bytes, the columns that each kind of source fills."""
