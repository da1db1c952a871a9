"""Tests of the room environments."""
