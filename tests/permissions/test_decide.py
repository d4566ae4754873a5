"""Every mode, authority and set of effects, and what comes of it."""

from itertools import product

import pytest

from codewhale.permissions.policy import decide
from codewhale.protocol.decisions import Decision, DecisionRequest
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.tools import Effect

READS, WRITES, EXECUTES, NETWORK = Effect.READS, Effect.WRITES, Effect.EXECUTES, Effect.NETWORK
PERSON, HEADLESS, AUTO = Authority.PERSON, Authority.HEADLESS, Authority.AUTO
SETS = [(), (READS,), (WRITES,), (READS, WRITES), (EXECUTES,), (NETWORK,), (NETWORK, WRITES), (EXECUTES, WRITES)]


def verdict(mode: Mode, authority: Authority, effects: tuple[Effect, ...]) -> Decision:
    """The decision about a tool with these effects."""
    return decide(DecisionRequest("sample", effects, (), mode, authority, "session"))


@pytest.mark.parametrize("authority", list(Authority))
@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        ((), "allow"),
        ((READS,), "allow"),
        ((NETWORK,), "allow"),
        ((WRITES,), "deny"),
        ((READS, WRITES), "deny"),
        ((EXECUTES,), "deny"),
        ((EXECUTES, WRITES), "deny"),
        ((NETWORK, WRITES), "deny"),
    ],
)
def test_plan_mode_changes_nothing_whoever_is_there(
    effects: tuple[Effect, ...], expected: str, authority: Authority
) -> None:
    assert verdict(Mode.PLAN, authority, effects).verdict == expected


@pytest.mark.parametrize(
    ("effects", "person", "headless", "auto"),
    [
        ((), "allow", "allow", "allow"),
        ((READS,), "allow", "allow", "allow"),
        ((WRITES,), "allow", "allow", "allow"),
        ((READS, WRITES), "allow", "allow", "allow"),
        ((NETWORK,), "allow", "allow", "allow"),
        ((EXECUTES,), "ask", "deny", "allow"),
        ((EXECUTES, WRITES), "ask", "deny", "allow"),
        ((NETWORK, WRITES), "ask", "deny", "allow"),
    ],
)
def test_agent_mode_depends_on_who_can_be_asked(
    effects: tuple[Effect, ...], person: str, headless: str, auto: str
) -> None:
    found = {authority: verdict(Mode.AGENT, authority, effects).verdict for authority in Authority}
    assert found == {PERSON: person, HEADLESS: headless, AUTO: auto}


@pytest.mark.parametrize("effects", SETS)
def test_yolo_mode_allows_everything(effects: tuple[Effect, ...]) -> None:
    assert {verdict(Mode.YOLO, authority, effects).verdict for authority in Authority} == {"allow"}


def test_every_decision_names_its_rule_and_reason() -> None:
    for mode, authority, effects in product(Mode, Authority, SETS):
        decision = verdict(mode, authority, effects)
        assert decision.rule and decision.reason


def test_a_refusal_says_what_would_allow_the_call() -> None:
    assert "/mode agent" in verdict(Mode.PLAN, PERSON, (WRITES,)).reason
    refused = verdict(Mode.AGENT, HEADLESS, (EXECUTES,)).reason
    assert "--auto" in refused and "--yolo" in refused


@pytest.mark.parametrize("mode", list(Mode))
def test_a_disabled_tool_is_denied_in_every_mode(mode: Mode) -> None:
    request = DecisionRequest("edit_file", (Effect.WRITES,), (), mode, Authority.AUTO, "session")
    verdict = decide(request, disabled=frozenset({"edit_file"}))
    assert (verdict.verdict, verdict.rule) == ("deny", "config.tools.disabled")
    assert "tools.disabled" in verdict.reason


@pytest.mark.parametrize(
    ("mode", "authority", "expected", "rule"),
    [
        (Mode.AGENT, PERSON, "ask", "mode.agent.unseen"),
        (Mode.AGENT, HEADLESS, "allow", "mode.agent.write"),
        (Mode.AGENT, AUTO, "allow", "mode.agent.write"),
        (Mode.YOLO, PERSON, "allow", "mode.yolo"),
        (Mode.PLAN, PERSON, "deny", "mode.plan"),
    ],
)
def test_a_person_sees_a_write_that_the_call_does_not_show(
    mode: Mode, authority: Authority, expected: str, rule: str
) -> None:
    decision = decide(DecisionRequest("fim_edit", (WRITES,), (), mode, authority, "session", unseen=True))
    assert (decision.verdict, decision.rule) == (expected, rule)
