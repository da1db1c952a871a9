"""The command line: one module for each command, and modules that commands share."""
