"""Worker processes, which run visitors' statements and make pages, within bounds."""
