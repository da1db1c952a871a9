"""The limits of visitors' SQL, and our SQL functions."""
