"""What SQL of visitors may use and how large it may be, and our functions in it."""
