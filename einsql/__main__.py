"""`python -m einsql` is the same program as the script `einsql`."""

from einsql.cli import main

if __name__ == "__main__":
    main()
