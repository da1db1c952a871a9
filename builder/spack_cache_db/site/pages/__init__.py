"""What each page shows: read from the file, as frozen records, for the templates."""
