"""What some tests need of the machine: a mark for each, so that a machine with Python and git alone passes over them
and says why."""

import shutil

import pytest

from codewhale.process.confinement import BUBBLEWRAP, SEATBELT, sandbox

HELD = pytest.mark.skipif(not sandbox().mechanism, reason="nothing on this machine holds a command")
# Landlock makes nothing new at the top of a workspace.
MAKES_FILES = pytest.mark.skipif(
    sandbox().mechanism not in (BUBBLEWRAP, SEATBELT), reason="needs bubblewrap: its commands make files"
)
RIPGREP = pytest.mark.skipif(shutil.which("rg") is None, reason="needs ripgrep")
PS = pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
