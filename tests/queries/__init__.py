"""metadata.yml's queries: right rows, all of them, and a word where a parameter is wrong."""
