"""The package in Pyodide: CPython in WebAssembly, as Datasette Lite runs it in browsers."""
