"""Finds specs in text that people copy from a terminal, a forum, a log or a list of
modules.
"""
