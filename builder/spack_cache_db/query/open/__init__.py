"""Opens a file of ours, and reads its small tables."""
