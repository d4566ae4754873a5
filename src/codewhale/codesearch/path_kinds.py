"""What a path alone says of a file: a test, an example, a document, a script, or the entry of a package."""

import re

from msgspec import Struct

KINDS = ("tests", "examples", "docs", "scripts", "entry")
TESTS, EXAMPLES, DOCS, SCRIPTS, ENTRY = (1 << bit for bit in range(len(KINDS)))

PROSE = frozenset({
    "", "markdown", "markdown_inline", "text", "rst", "asciidoc", "org", "latex", "html", "css", "scss", "json",
    "jsonc", "json5", "yaml", "toml", "xml", "ini", "properties", "dtd", "csv", "gitignore", "svg",
})  # fmt: skip

_FOLDERS = (
    (
        TESTS,
        r"tests?|__tests__|specs?|testing|testdata|test[-_].*|.*[-_]tests?|fixtures?|__mocks__|mocks?|[a-z]*Tests?|"
        r"e2e|unit|integration[-_]?tests?",
    ),
    (EXAMPLES, r"(?i:_?examples?|samples?|demos?|docs?_src|tutorials?|playground|snippets?|cookbook|www|website|site)"),
    (DOCS, r"(?i:docs?|documentation|man|wiki|changes|changelog|\.changeset)"),
    (
        SCRIPTS,
        r"scripts?|tools?|ci|\.github|\.circleci|bench(?:mark)?s?|perf|build|cmake|packaging|contrib|hack|dev|maint|"
        r"\.ci|fuzz(?:ing)?|benches",
    ),
)
_NAMES = (
    (
        TESTS,
        r"test_.*|.*_test\.\w+|.*_spec\.\w+|.*[.-](?:test|spec|e2e)\.\w+|.*(?:Tests?|Spec|Suite|TestCase)\.\w+|"
        r"conftest\.py|test\w*\.(?:c|cc|cpp|h|lua|sh|py)|.*\.bats",
    ),
    (DOCS, r"(?i:.*\.(?:md|rst|adoc|txt|mdx|org)|(?:CHANGE|HISTORY|README|LICENSE|CONTRIBUTING).*)"),
    (
        SCRIPTS,
        r"(?:setup\.py|gulpfile|webpack|rollup|vite|jest|babel|eslint|Makefile|Rakefile|"
        r"build\.(?:rs|zig|sbt|gradle)).*",
    ),
    (
        ENTRY,
        r"__init__\.py|package-info\.java|mod\.rs|lib\.rs|index\.[jt]sx?|index\.[cm]js|package\.scala|init\.lua|"
        r"all\.scala|implicits\.scala",
    ),
)


class _Rule(Struct, frozen=True):
    flag: int
    pattern: re.Pattern[str]


class PathKinds:
    """Tells what kinds of file paths are; remembers the folders it has seen. One a reader."""

    def __init__(self) -> None:
        self._of_folders = [_Rule(flag, re.compile(pattern)) for flag, pattern in _FOLDERS]
        self._of_names = [_Rule(flag, re.compile(pattern)) for flag, pattern in _NAMES]
        self._known = {"": 0}

    def of(self, path: str) -> int:
        """The kinds of a POSIX path, as bits."""
        folder, _, name = path.rpartition("/")
        flags = self._of_folder(folder)
        for rule in self._of_names:
            if rule.pattern.fullmatch(name):
                flags |= rule.flag
        return flags

    def _of_folder(self, folder: str) -> int:
        flags = self._known.get(folder)
        if flags is None:
            above, _, name = folder.rpartition("/")
            flags = self._of_folder(above) if above.count("/") < 60 else 0
            for rule in self._of_folders:
                if rule.pattern.fullmatch(name) and (not above or rule.flag != SCRIPTS):
                    flags |= rule.flag
            self._known[folder] = flags
        return flags
