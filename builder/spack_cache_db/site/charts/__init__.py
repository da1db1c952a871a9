"""Charts as HTML: small functions that draw records as SVG, or as a table with it."""
