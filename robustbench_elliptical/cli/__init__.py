"""The command line: parse, call one library function, print. Errors become exit codes here."""
