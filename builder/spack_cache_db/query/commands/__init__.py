"""The commands that install or load binaries."""
