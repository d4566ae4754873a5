"""What every section of the configuration is called, and what of it a project may say."""

from pathlib import Path
from typing import get_args

import pytest

from codewhale.app.settings import PROJECT_RULES, Family, Settings, open_config
from codewhale.config.tighten import tightened
from codewhale.config.values import fields
from codewhale.permissions.trust import TrustStore
from codewhale.process.sandbox.profiles import FAMILIES


def project(home: Path, workspace: Path, text: str) -> None:
    """A project's configuration that is trusted as it is."""
    (workspace / ".codewhale").mkdir(exist_ok=True)
    (workspace / ".codewhale" / "config.toml").write_text(text)
    store = TrustStore(str(home))
    for item in store.survey(str(workspace)):
        store.add(item)


def test_each_rule_is_for_a_key_that_there_is() -> None:
    known = fields(Settings) or {}
    for key in PROJECT_RULES:
        first, _, rest = key.partition(".")
        assert first in known and (not rest or rest in (fields(known[first]) or {})), key


@pytest.mark.parametrize(
    ("own", "theirs", "holds"),
    [
        ("", "never", "never"),
        ("", "suggest", "suggest"),
        ("", "auto", "suggest"),
        ("auto", "suggest", "suggest"),
        ("auto", "auto", "auto"),
        ("never", "suggest", "never"),
        ("suggest", "nonsense", "suggest"),
    ],
)
def test_a_project_only_lowers_what_runs_unasked(
    own: str, theirs: str, holds: str, home: Path, workspace: Path
) -> None:
    (home / "config.toml").write_text(f'approval = "{own}"\n' if own else "")
    project(home, workspace, f'approval = "{theirs}"\n')
    config = open_config(str(home), str(workspace), {}, {})
    assert config.get("approval") == holds
    assert any("ignored: approval" in notice for notice in config.notices) is (holds != theirs)


def test_what_is_forbidden_adds_up_and_the_person_has_the_last_word(home: Path, workspace: Path) -> None:
    (home / "config.toml").write_text('model = "mine"\n[tools]\ndisabled = ["note"]\n')
    project(home, workspace, 'model = "theirs"\nprovider = "evil"\n[tools]\ndisabled = ["exec_shell"]\n')
    config = open_config(str(home), str(workspace), {}, {})
    assert config.get("tools.disabled") == ["note", "exec_shell"]
    assert (config.get("model"), config.get("provider")) == ("theirs", "deepseek")
    config = open_config(str(home), str(workspace), {"CODEWHALE_MODEL": "now"}, {})
    assert config.get("model") == "now"
    assert open_config(str(home), str(workspace), {}, {"model": "here"}).get("model") == "here"
    assert open_config(str(home), str(home), {}, {}).get("model") == "mine"


def test_the_families_of_caches_are_those_of_the_sandbox() -> None:
    assert get_args(Family) == tuple(FAMILIES)


def test_a_project_only_lowers_the_network_and_hides_more() -> None:
    below = {"sandbox": {"network": "ask", "hidden": ["~/a"], "writable": []}}
    wanted = {"sandbox": {"network": "on", "hidden": ["~/b"], "writable": ["/x"], "caches": ["npm"]}}
    kept, refused = tightened(wanted, below, PROJECT_RULES)
    assert kept == {"sandbox": {"hidden": ["~/a", "~/b"]}}
    assert refused == ["sandbox.caches", "sandbox.network", "sandbox.writable"]
    assert tightened({"sandbox": {"network": "off"}}, below, PROJECT_RULES)[0] == {"sandbox": {"network": "off"}}


@pytest.mark.parametrize(("own", "theirs", "holds"), [(False, True, True), (None, False, None), (True, False, None)])
def test_a_project_may_hide_more_and_never_less(own: bool | None, theirs: bool, holds: bool | None) -> None:
    below = {} if own is None else {"secrets": {"shapes": own, "prefixes": ["mine_"]}}
    wanted = {"secrets": {"shapes": theirs, "prefixes": ["theirs_"]}}
    kept, refused = tightened(wanted, below, PROJECT_RULES)
    assert kept["secrets"].get("shapes") is holds
    assert kept["secrets"]["prefixes"] == [*(["mine_"] if below else []), "theirs_"]
    assert refused == ([] if holds else ["secrets.shapes"])
