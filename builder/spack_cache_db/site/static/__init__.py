"""The command `export-static`: the site as files that any web server can publish."""
