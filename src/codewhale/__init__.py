"""CodeWhale: a terminal coding agent whose harness lets a weaker model succeed."""

__version__ = "0.1.0"
