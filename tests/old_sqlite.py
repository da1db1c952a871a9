"""Ends with status 1 unless Python uses this version of SQLite, such as 3260000."""

import sqlite3
import sys

if __name__ == "__main__":
    major, minor, patch = sqlite3.sqlite_version_info[:3]
    found = f"{major}{minor:02}{patch:02}00"
    if found != sys.argv[1]:
        sys.exit(
            f"{sys.executable} uses SQLite {sqlite3.sqlite_version}, not {sys.argv[1]}"
        )
