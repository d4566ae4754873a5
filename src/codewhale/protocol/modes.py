"""Modes and authority: how far a session may go, and who has said so."""

from enum import StrEnum


class Mode(StrEnum):
    """What the session is for. Plan changes nothing; Agent works under approval; Yolo asks for nothing."""

    PLAN = "plan"
    AGENT = "agent"
    YOLO = "yolo"


class Authority(StrEnum):
    """Who can be asked. `PERSON`: someone answers approvals. `HEADLESS`: nobody does; reads and workspace
    writes run. `AUTO`: nobody does; whatever no rule denies or asks for runs."""

    PERSON = "person"
    HEADLESS = "headless"
    AUTO = "auto"
