"""The answers of the commands, the API and the pages."""
