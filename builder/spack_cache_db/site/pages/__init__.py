"""The content of each page: frozen records that templates render."""
