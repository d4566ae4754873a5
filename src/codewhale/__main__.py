"""`python -m codewhale` is `codewhale`."""

import sys

from codewhale.cli import main

if __name__ == "__main__":
    sys.exit(main())
