"""Globs of rules: what each program's match, what they do not, and that no pattern takes long."""

import pytest
from msgspec.structs import replace

from codewhale.skills.globs import expanded, matching, matching_glob
from codewhale.skills.model import Activation, Skill
from support.patience import Moment

ROOT = "/srv/project"
RULE = Skill("x", "", "x", "x", kind="rule", activation=Activation.GLOB, folder=ROOT)


def applies(program: str, glob: str, path: str) -> bool:
    globs = tuple(glob.split(" "))
    return bool(matching_glob(replace(RULE, program=program, globs=globs), ROOT, path))


@pytest.mark.parametrize(
    ("program", "glob", "path", "does"),
    [
        ("cursor", "*.ts", "a.ts", True),
        ("cursor", "*.ts", "src/deep/a.ts", True),
        ("cursor", "*.ts", "a.ts/b.py", False),
        ("cursor", "src/*.ts", "src/a.ts", True),
        ("cursor", "src/*.ts", "src/deep/a.ts", False),
        ("cursor", "src/*.ts", "web/src/a.ts", False),
        ("cursor", "**/*.{ts,tsx}", "src/a.tsx", True),
        ("cursor", "**", "a/b/c", True),
        ("cursor", "*", "a/b/c", True),
        ("cursor", "src/components", "src/components/a/b.ts", True),
        ("cursor", "/src/**", "src/a.ts", True),
        ("cursor", "./src/**", "src/a.ts", True),
        ("windsurf", "*.js", "src/a.js", True),
        ("codewhale", "*.py", "src/a.py", True),
        ("codewhale", "Makefile", "sub/Makefile", True),
        ("claude", "*.md", "README.md", True),
        ("claude", "*.md", "docs/README.md", False),
        ("claude", "src/**/*", "src/a/b.ts", True),
        ("claude", "src/**/*.{ts,tsx}", "src/a.tsx", True),
        ("claude", "{src,lib}/**/*.ts", "lib/x/a.ts", True),
        ("claude", "{src,lib}/**/*.ts", "test/a.ts", False),
        ("claude", "src/components/*.tsx", "src/components/deep/a.tsx", False),
        ("cline", "*.md", "docs/a.md", False),
        ("cline", "**/*.test.ts", "a.test.ts", True),
        ("cline", "packages/{web,api}/**", "packages/api/x/y", True),
        ("cline", "packages/*/src/", "packages/web/src/a.ts", True),
        ("cline", "src/**", "src", False),
        ("cline", "src/[ab]?.py", "src/bx.py", True),
        ("cline", "src/[!ab]?.py", "src/bx.py", False),
        ("copilot", "*", "a.py", True),
        ("copilot", "*", "src/a.py", False),
        ("copilot", "**/*", "src/a.py", True),
        ("copilot", "*.py", "src/a.py", False),
        ("copilot", "src/*.py", "src/foo/bar.py", False),
        ("copilot", "src/**/*.py", "src/foo.py", True),
        ("copilot", "**/subdir/**/*.py", "subdir/foo.py", True),
        ("copilot", "**/subdir/**/*.py", "deep/parent/subdir/nested/qux.py", True),
        ("copilot", "**/subdir/**/*.py", "other/foo.py", False),
        ("cursor", "*.ts !*.test.ts", "a.test.ts", False),
        ("cursor", "*.ts !*.test.ts", "a.ts", True),
        ("cline", "!docs/**", "src/a.ts", True),
        ("cline", "!docs/**", "docs/a.ts", False),
        ("cursor", "*.ts", "../outside.ts", False),
        ("cursor", "*.ts", "/srv/project/src/a.ts", True),
        ("cursor", "*.ts", "/srv/project2/src/a.ts", False),
        ("cursor", "*.TS", "a.ts", False),
        ("cursor", "**/文档/*.md", "a/文档/b.md", True),
    ],
)
def test_a_glob_matches_as_its_program_documents(program: str, glob: str, path: str, does: bool) -> None:
    assert applies(program, glob, path) is does


def test_only_those_by_glob_apply_and_a_persons_own_start_at_the_workspace() -> None:
    own = replace(RULE, folder="", globs=("src/*.py",))
    asked = replace(own, activation=Activation.MANUAL)
    assert matching([own, asked], ROOT, ["docs/x", "src/a.py"]) == (own,)
    assert matching_glob(replace(own, globs=("*.md", "src/*.py")), ROOT, "src/a.py") == "src/*.py"


def test_five_hundred_rules_and_two_hundred_paths_take_milliseconds() -> None:
    rules = [
        replace(RULE, globs=(f"src/m{n}/**/*.ts", f"*.x{n}", f"**/t{n}/*.{{a,b}}"), program="cursor")
        for n in range(500)
    ]
    paths = [f"src/m{n}/deep/er/file{n}.ts" for n in range(200)]
    assert len(matching(rules, ROOT, paths)) == 200


@pytest.mark.parametrize(
    "glob",
    ["**/" * 300 + "x", "**/*a*/" * 120 + "b", "*a" * 400 + "b", "{" * 900, "{a" * 300, "[a" * 300, "[", "\\",
     "{,}" * 6, "?*" * 400, "{a,{b,{c,d}}}" * 3],
)  # fmt: skip
def test_no_pattern_takes_long(glob: str) -> None:
    rule = replace(RULE, globs=(glob,), program="cursor")
    began = Moment()
    matching([rule], ROOT, ["a/" * 60 + "a" * 200, "a" * 5_000, "a/" * 500 + "a"] * 5)
    assert not began.laboured


@pytest.mark.parametrize("glob", ["", "!", "/", "x" * 1_001, "{a,b}" * 10, "{" + "a," * 10_000 + "}"])
def test_a_glob_that_cannot_be_understood_is_refused_by_name(glob: str) -> None:
    with pytest.raises(ValueError, match="its globs cannot be used"):
        expanded((glob,), "cursor")
