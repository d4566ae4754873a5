"""`$name`: which words of a message are skills, which are shell, code, prices and quotations, and what is said."""

import re
import sysconfig
from itertools import islice
from pathlib import Path

import pytest

from codewhale.permissions.trust import TrustStore
from codewhale.skills.library import SkillLibrary
from codewhale.skills.mentions import SkillResolution, described, mentions, names, plan_mention, resolve
from codewhale.skills.model import Skill, SkillList
from codewhale.skills.places import SkillPlaces
from codewhale.skills.store import SkillStore

ROOT = Path(__file__).resolve().parents[2]


def skill(name: str, space: str = "user", tools: tuple[str, ...] | None = None) -> Skill:
    return Skill(name, f"Does {name}.", f"{space}/{name}", f"/{space}/{name}/SKILL.md", space=space, tools=tools)


FOUND = SkillList(
    skills=(
        skill("systematic-debugging"),
        skill("deploy", "project"),
        skill("review", tools=("read_file",)),
        skill("locked", tools=()),
        skill("gh-fix-ci", "github"),
        skill("gh-address", "github"),
        skill("superpowers:plan", "plugin"),
        skill("v1.2-notes"),
        skill("调试"),
        skill("Loud"),
        skill("path"),
        skill("x"),
        skill("twin", "project"),
        skill("twin", "rules"),
    ),
    off=(skill("sleepy"),),
    shadowed=(skill("deploy", "user"),),
    untrusted=(skill("stranger", "project"),),
)
NOTHING = ("", "", "")

# text; what is activated; a part of what the person is told; a part of why nothing is sent
TABLE = [
    # a name, anywhere in the message
    ("$deploy", "deploy", "", ""),
    ("$systematic-debugging the login fails", "systematic-debugging", "", ""),
    ("please use $deploy for staging", "deploy", "", ""),
    ("the login fails\n$systematic-debugging", "systematic-debugging", "", ""),
    ("go on with ($deploy)", "deploy", "", ""),
    ("first line\n\n  $deploy now", "deploy", "", ""),
    ("- $deploy the site", "deploy", "", ""),
    ("$调试 登录失败", "调试", "", ""),
    ("请用 $deploy，然后告诉我", "deploy", "", ""),
    ("（$deploy）", "deploy", "", ""),
    ("$deploy costs $5.00", "deploy", "", ""),
    ("$deploy --fast to $HOME", "deploy", "", ""),
    ("$deploy $deploy", "deploy", "", ""),
    # with its namespace
    ("$github:gh-fix-ci", "gh-fix-ci", "", ""),
    ("$gh-fix-ci", "gh-fix-ci", "", ""),
    ("$project:deploy", "deploy", "", ""),
    ("$user:deploy", "user:deploy", "", ""),
    ("$superpowers:plan the work", "superpowers:plan", "", ""),
    ("$plugin:superpowers:plan", "superpowers:plan", "", ""),
    ("$gitlab:gh-fix-ci", "", "no skill gitlab:gh-fix-ci; did you mean $gh-fix-ci?", ""),
    ("$github:*", *NOTHING),
    # punctuation behind it
    ("use $deploy.", "deploy", "", ""),
    ("$deploy, then tell me", "deploy", "", ""),
    ("$deploy: staging", "deploy", "", ""),
    ("$deploy; and then rest a bit, please", "deploy", "", ""),
    ("can you $deploy?!", "deploy", "", ""),
    ("use $v1.2-notes.", "v1.2-notes", "", ""),
    ("use $deploys.", "", "no skill deploys; did you mean $deploy?", ""),
    ("$deploy/bin", *NOTHING),
    ("$deploy.sh", *NOTHING),
    ("$deploy[0]", *NOTHING),
    ("$deploy's", *NOTHING),
    ("$deploy$x", *NOTHING),
    ("$deploy=1", *NOTHING),
    # what no skill is called
    ("$PATH is wrong", *NOTHING),
    ("$HOME/bin", *NOTHING),
    ("$Deploy it", *NOTHING),
    ("$deploY it", *NOTHING),
    ("$1 and $2", *NOTHING),
    ("it costs $5.00", *NOTHING),
    ("$100k a month", *NOTHING),
    ("${deploy}", *NOTHING),
    ("$(deploy)", *NOTHING),
    ("$$ and $? and $! and $@", *NOTHING),
    ("$_deploy", *NOTHING),
    ("$ deploy", *NOTHING),
    ("$$deploy", *NOTHING),
    ("a$deploy", *NOTHING),
    ("US$deploy", *NOTHING),
    (r"\$deploy", *NOTHING),
    (r"write \$deploy and not $review", "review", "", ""),
    # code, quotations, formulas
    ("run `$deploy` for me", *NOTHING),
    ("run ``a ` $deploy`` for me", *NOTHING),
    ("a lone ` and $deploy", "deploy", "", ""),
    ("look:\n```sh\n$deploy\n```\n", *NOTHING),
    ("look:\n~~~\n$deploy\n```\n$deploy\n~~~\nand $review", "review", "", ""),
    ("```\nnever closed\n$deploy", *NOTHING),
    ("````\n```\n$deploy\n````", *NOTHING),
    ("this:\n\n    $deploy now\n", *NOTHING),
    ("this:\n\n\t$deploy now\n", *NOTHING),
    ('he said "$deploy it"', *NOTHING),
    ("he said '$deploy it'", *NOTHING),
    ("he said “use $deploy”", *NOTHING),
    ("他说「$deploy」", *NOTHING),
    ("> $deploy it\n\nwhat does this mean?", *NOTHING),
    ("don't forget $deploy, it's late", "deploy", "", ""),
    ('a 5" disk and $deploy', "deploy", "", ""),
    ("where $x^2 + y = 0$ holds", *NOTHING),
    # command lines
    ("echo $deploy", *NOTHING),
    ("export FOO=$deploy", *NOTHING),
    ("  echo the $deploy is done", *NOTHING),
    ("$ $deploy now", *NOTHING),
    ("me@box:~/src$ $deploy", *NOTHING),
    ("#!/bin/sh\n$deploy now", *NOTHING),
    ("# the $path of the tools", *NOTHING),
    ("cp -r src $deploy", "", "$deploy stays as text", ""),
    ("FOO=1 $deploy", "", "$deploy stays as text", ""),
    ("make all && $deploy", "", "$deploy stays as text", ""),
    ("set -e\n$deploy now", "", "$deploy stays as text", ""),
    ("cat $unknown | sort", *NOTHING),
    ("git push is broken, use $systematic-debugging", "systematic-debugging", "", ""),
    ("if it fails use $systematic-debugging", "systematic-debugging", "", ""),
    ("make 不行，用 $deploy", "deploy", "", ""),
    # near names never act
    ("$systematic", "", "did you mean $systematic-debugging?", ""),
    ("$debugging", "", "did you mean $systematic-debugging?", ""),
    ("$systematic-debuging", "", "did you mean $systematic-debugging?", ""),
    ("$fix", "", "did you mean $gh-fix-ci?", ""),
    ("$loud", "", "did you mean /skill Loud?", ""),
    ("$user is wrong", "", "no skill user; it stays as text", ""),
    ("$project is wrong", "", "no skill project; it stays as text", ""),
    ("$github", "", "", "$github:gh-fix-ci, $github:gh-address"),
    ("$gh and $deploy", "", "", "$gh-fix-ci, $gh-address"),
    ("$twin", "", "", "$project:twin, $rules:twin"),
    ("$rules:twin", "rules:twin", "", ""),
    ("$nosuchthing at all", "", "no skill nosuchthing; it stays as text", ""),
    ("$i is too large", "", "no skill i; it stays as text", ""),
    # switched off, not trusted
    ("$sleepy", "", "sleepy is switched off; to use it: /skills on user:sleepy", ""),
    ("$user:sleepy.", "", "sleepy is switched off; to use it: /skills on user:sleepy", ""),
    ("$stranger", "", "to use it: codewhale trust add /project/stranger/SKILL.md", ""),
    # several at once: one guides, one restricts
    ("$deploy with $review", "deploy review", "", ""),
    ("$review, then $deploy", "review deploy", "", ""),
    ("$deploy with $systematic-debugging", "", "", "neither restricts"),
    ("$locked $review", "", "", "both restrict"),
    ("$deploy $review $systematic-debugging", "", "", "3 are named"),
    ("$deploy and $nosuchthing", "deploy", "no skill nosuchthing", ""),
    ("$sleepy and $deploy", "deploy", "switched off", ""),
]  # fmt: skip


def test_the_table_is_long() -> None:
    assert len(TABLE) >= 80 and len({row[0] for row in TABLE}) == len(TABLE)


@pytest.mark.parametrize(("text", "active", "notice", "unclear"), TABLE, ids=[row[0] for row in TABLE])
def test_dollar_names(text: str, active: str, notice: str, unclear: str) -> None:
    done = resolve(mentions(text), FOUND)
    called = {skill.file: name for name, skill in reversed(names(FOUND))}
    called |= {"/rules/twin/SKILL.md": "rules:twin"}
    assert [called[skill.file] for skill in done.skills] == active.split()
    assert len(done.notices) == bool(notice) and notice in "".join(done.notices)
    assert bool(done.unclear) == bool(unclear) and unclear in done.unclear


def test_a_skill_of_the_workspace_that_nobody_trusts_says_how_to_trust_it(tmp_path: Path) -> None:
    file = tmp_path / "workspace" / ".agents" / "skills" / "tidy" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: tidy\ndescription: Tidies up.\n---\nTidy up.\n")
    home = str(tmp_path / ".codewhale")
    store = SkillStore(SkillPlaces(home, str(tmp_path)), TrustStore(home))
    library = SkillLibrary((store,), lambda name: name)
    done = resolve(mentions("$tidy please"), library.of(str(tmp_path / "workspace")))
    assert done.skills == () and f"codewhale trust add {file}" in done.notices[0]


def test_what_is_said_has_a_bound() -> None:
    many = SkillList(tuple(skill(f"deploy-{number}") for number in range(300)))
    done = resolve(mentions("$deploy " + "y" * 200), many)
    assert "$deploy-7, ..." in done.unclear and "$deploy-8" not in done.unclear
    done = resolve(mentions(" ".join(f"$nothing{number}" for number in range(300))), FOUND)
    assert len(done.notices) == 5
    assert len(resolve(mentions("$" + "q" * 9_000), FOUND).notices[0]) < 200


@pytest.mark.parametrize("piece", ["` ``", '"', "'a", "$a", "“", "$x^", "```\n", "$a.", "a --b ", "\n> $deploy "])
def test_a_hostile_message_is_read_in_time_that_grows_with_its_length(piece: str) -> None:
    mentions((piece + " ") * 60_000 + "$deploy")


def test_a_word_that_looks_like_a_skill_in_another_form_of_unicode_is_that_skill() -> None:
    cafe = SkillList((skill("caf\u00e9"),))
    assert resolve(mentions("$cafe\u0301 please"), cafe).skills == cafe.skills


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("$deploy the site", "deploy"),
        ("$github:gh-fix-ci", "github:gh-fix-ci"),
        ("$deploy: push it", "deploy"),
        ("then $deploy the site", ""),
        (" $deploy", ""),
        ("- $deploy", ""),
        ("`$deploy`", ""),
        ("$HOME is set", ""),
        ("$deploy = 5", ""),
        ("$deploy/bin", ""),
        ("$5.00 at most", ""),
        (r"\$deploy", ""),
        ("", ""),
    ],
)
def test_a_line_of_a_plan_names_a_skill_at_its_very_start(line: str, name: str) -> None:
    assert plan_mention(line) == name


def test_a_shadowed_skill_is_typed_by_its_full_name() -> None:
    typed = [name for name, _ in names(FOUND)]
    assert typed.count("deploy") == 1 and typed[-1] == "user:deploy"
    assert resolve(mentions("$user:deploy"), FOUND).skills == FOUND.shadowed


def test_completion_says_what_a_skill_restricts_and_offers_none_that_is_off() -> None:
    rows = dict(described(FOUND))
    assert rows["review"] == "restricts to 1 tool: Does review." and rows["locked"].startswith("restricts to 0 tools")
    assert rows["deploy"] == "Does deploy." and "user:deploy" in rows and not {"sleepy", "stranger"} & rows.keys()


ORDINARY = (
    "a all app arch args base bin body branch build case cmd code commit conf config count data date deploy dest dir "
    "dirs docs else error exit f file files flags for from head home host i id if in index input key lang length level "
    "line link list log make match mode n name new node old opt out output package page path pid plan port print "
    "prog ref release repo result review run script sh size sort src start str sub tag target test text time "
    "title tmp tool type url user val value var version word x y"
).split()


def real_lines() -> list[tuple[str, str]]:
    """Lines with a `$` of real scripts, documents and sources of this machine, and where they stand."""
    std = Path(sysconfig.get_paths()["stdlib"])
    own = ("scripts/**/*", "docs/**/*.md", "Makefile", "*.md", "bench/**/*", "tests/support/**/*")
    git = ("share/git-core/templates/hooks/*", "lib/git-core/git-*.sh", "share/doc/git/contrib/**/*")
    places = [
        *(ROOT.glob(pattern) for pattern in own),
        *(std.glob(pattern) for pattern in ("*.py", "*/*.py", "config*/*")),
        *(Path("/usr").glob(pattern) for pattern in (*git, "bin/*grep", "bin/ldd", "bin/tzselect")),
    ]
    rows = []
    for place in places:
        for path in islice(sorted(place), 3_000):
            if path == Path(__file__) or not path.is_file() or path.stat().st_size > 1 << 20:
                continue
            data = path.read_bytes()
            if b"$" in data and b"\0" not in data:
                rows += [(line, str(path)) for line in data.decode("utf-8", "replace").splitlines() if "$" in line]
    return rows


def test_real_shell_and_prose_activates_nothing() -> None:
    found = SkillList(tuple(skill(name) for name in ORDINARY))
    rows = real_lines()
    named = [row for row in rows if re.search(r"\$(?:" + "|".join(ORDINARY) + r")\b", row[0])]
    assert len(rows) > 500 and len(named) > 100  # a line that names no skill of the list proves nothing
    false = [(line, path) for line, path in rows if resolve(mentions(line), found).skills]
    assert false == []


def test_a_real_script_as_a_whole_activates_nothing() -> None:
    found = SkillList(tuple(skill(name) for name in ORDINARY))
    texts: dict[str, list[str]] = {}
    for line, path in real_lines():
        texts.setdefault(path, []).append(line)
    done = {path: resolve(mentions("what is wrong?\n\n" + "\n".join(lines)), found) for path, lines in texts.items()}
    assert {path: done for path, done in done.items() if done.skills or done.unclear} == {}


def test_nothing_is_said_of_an_empty_message() -> None:
    assert resolve(mentions(""), FOUND) == resolve(mentions("nothing here"), FOUND) == SkillResolution()
