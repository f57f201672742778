"""The command line: parse, call, render; one module a command."""
