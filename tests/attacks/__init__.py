"""The attack, in short, and how it judges."""
