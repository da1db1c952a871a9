"""The public function `export`, which checks its arguments.

`folder`, which writes the files, is imported when it is called: only an export needs
pyarrow.
"""

from __future__ import annotations

from spack_cache_db.arguments import checked
from spack_cache_db.bounded_files import AnyPath, checked_file
from spack_cache_db.errors import ArgumentError
from spack_cache_db.exports.contents import FORMAT_NAMES
from spack_cache_db.exports.report import ExportReport


@checked
def export(
    file: AnyPath, output: AnyPath, *, format: str = "parquet", license: str = ""
) -> ExportReport:
    """Write every table and wide view of a database as a file, and describe them.

    The same database gives the same bytes with the same version of pyarrow. The folder
    holds nothing unfinished: files are renamed into it, the descriptions last. Files of
    an earlier export are replaced, and those of another format removed.

    Args:
        file: a database made by `build`, as text or `Path`.
        output: the folder: a new one, an empty one, or that of an earlier export.
        format: `parquet` (compressed by zstd) or `csv` (compressed by gzip; without the
            table `package_rests`, which contains bytes).
        license: the license of the data, as a name or as an address; empty for the one
            that the database names, if it names any.

    Returns:
        The number of rows of each table, and the size in bytes.

    Raises:
        ArgumentError: an argument has a wrong type, or the format is another.
        DatabaseError: the file is not a database of this program, or is damaged.
        OutputError: the folder contains other files, or cannot be written.
    """
    if format not in FORMAT_NAMES:
        raise ArgumentError(
            f"format is {format!r}, expected {' or '.join(FORMAT_NAMES)}"
        )
    path = checked_file("file", file)
    folder = checked_file("output", output)
    from spack_cache_db.exports.folder import write_folder

    return write_folder(path, folder, format, license)
