"""Begin: `python -I -S -B FOLDER SOURCE FILTER`, the channel as standard input and output. FILTER is a seccomp program
in hex ("" for none)."""

import os
import sys

if __name__ == "__main__":
    # This folder alone, by the names that it has elsewhere: nothing above it is there, or may be seen.
    for name in ("codewhale", "codewhale.rlm", "codewhale.rlm.kernel"):
        sys.modules[name] = package = type(sys)(name)
        package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    from codewhale.rlm.kernel.rounds import main

    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
