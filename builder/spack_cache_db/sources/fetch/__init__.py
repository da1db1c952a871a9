"""Downloads indexes of mirrors and package data."""
