"""Modes, approval and authority: how far a session may go, and who has said so."""

from enum import StrEnum

from msgspec import Struct


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


class Approval(StrEnum):
    """What becomes of a call that is neither allowed nor denied by a rule. `SUGGEST` asks the person, `SANDBOX` asks
    about what the sandbox does not hold, `AUTO` runs what nothing asks for, under `NEVER` nobody is asked and an ask
    is a refusal."""

    SUGGEST = "suggest"
    SANDBOX = "sandbox"
    AUTO = "auto"
    NEVER = "never"


class Rights(Struct, frozen=True):
    """How far a session may go at this moment; a child's are never more than its parent's."""

    mode: Mode
    authority: Authority
    approval: Approval = Approval.SUGGEST


_MODES = tuple(Mode)
NARROWEST_FIRST = (Approval.NEVER, Approval.SUGGEST, Approval.SANDBOX, Approval.AUTO)


def narrowest(child: Rights, parent: Rights) -> Rights:
    """What a child may do: never more than its parent may at this moment, and nothing that its own rights leave out.
    Where the parent asks a person, what the child would run unasked is asked as well."""
    mode = min(child.mode, parent.mode, key=_MODES.index)
    approval = min(child.approval, parent.approval, key=NARROWEST_FIRST.index)
    alone = Authority.HEADLESS in (child.authority, parent.authority)
    return Rights(mode, Authority.HEADLESS if alone else parent.authority, approval)
