"""Conditions: the common form of a query, an option, a filter and a line of an
environment.
"""
