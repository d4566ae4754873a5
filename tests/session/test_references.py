"""Names of files in instructions: what is not there is found, and what may mean something else is passed over."""

from pathlib import Path

import pytest

from codewhale.session.references import dead_references
from support.house import ROOT

TREE = (
    "src/app/main.py", "src/app/launch.py", "docs/guide.md", "docs/a b.md", "tests/test_main.py", "package.json",
    "web/src/app.tsx", ".github/workflows/ci.yml", "Makefile", "LICENSE", "web/tsconfig.json",
)  # fmt: skip
DEAD = {
    "Read `docs/setup.md` first.": "docs/setup.md",
    "See [the guide](docs/guides.md).": "docs/guides.md",
    "See [the guide](./docs/guides.md#top \"Guide\") for example.": "./docs/guides.md",
    "The entry point is `src/app/start.py:12`.": "src/app/start.py",
    "Tests are in `tests/unit/`.": "tests/unit/",
    "Run `scripts/check.sh`": "scripts/check.sh",
    "CI is `.github/workflows/test.yml`.": ".github/workflows/test.yml",
    "Settings are in `settings.toml`.": "settings.toml",
    "`src/app/legacy` holds the rest": "src/app/legacy",
    "`tests/test_start.py::test_it` must pass": "tests/test_start.py",
    "[License](LICENCE)": "LICENCE",
}  # fmt: skip
FINE = """
Read `docs/guide.md`, [it](docs/guide.md#part), [space](docs/a%20b.md) and `./src/app/main.py:3`.
The code is in `app/launch.py`, `launch.py`, `src/app/` and `app.tsx`.
`tsconfig.json` is below `web/`. `Makefile`, [L](LICENSE)
Docs: https://pages.test/docs/x.md, [site](https://pages.test/x.md), [mail](mailto:a@b.test), [part](#part).
Packages: `github.com/a/b.go`, `golang.org/x/tools`, `@scope/pkg`, `actions/checkout`
Globs: `src/**/*.py`, `tests/test_*.py`, `{a,b}.ts`, `<name>.md`, `$HOME/x.toml`, `~/.config/x.toml`
Roots: `/etc/hosts`, `/api/users`, `../other/x.md`
Placeholders: `path/to/file.py`, `src/foo.py`, `your_module.py`, `src/ROOM/FILE.py`, `src/my-thing/a.ts`, `X.test.ts`
Forms: `kebab-case.ts`, `PascalCase.tsx`, `docs/0.MINOR.x.md`
Names: `origin/main`, `feature/login`, `application/json`, `and/or`, `TCP/IP`, `os.path`, `3.11`
Libraries: `Node.js`, `Vue.js`, `node.js`; `self.name`, `config.get`, `np.array`, `v1.2.3`, `.py`, `.env`, `e.g.`
Made: `dist/app.js`, `node_modules/.bin/tsc`, `build/out.css`, `.venv/bin/python`, `coverage/index.html`, `var/x.db`
Ignored: `secret.json`. Private: `.claude/settings.local.json`, `.codewhale/handoff.md`
Create `notes/plan.md` when there is none. Output goes to `report.html`.
For example `docs/new.md`. Do not add `setup.cfg`.
Commands: `npm run build`, `make -C docs x.md`, `python scripts/none.py`. Double: ``docs/none.md``.
```sh
cat `docs/none.md` docs/none.md [x](docs/none.md)
```
![picture](docs/none.png)
"""
OTHERS = {
    "AGENTS.md": """# Repository guidelines

## Structure
- `src/app/` holds the service, entry `src/app/main.py`; the UI is in `web/`.
- Tests live in `tests/` and mirror modules (`src/app/x.py` -> `tests/test_x.py`).

## Commands
- `make test`, `npm test -- app.tsx`, `pytest tests/test_main.py::test_x`

## Style
- 4 spaces; `snake_case`; type hints via `typing.Protocol`. React with `useState`/`useMemo`.
- Branches `fix/short-name`. Secrets go to `.env.local`; copy `.env.example`. Never edit `dist/`.
""",
    "CLAUDE.md": """# CLAUDE.md
This file guides Claude Code (claude.ai/code) here.
## Architecture
1. `web/src/app.tsx` renders `<App/>` and calls `/api/v1/items`
2. `launch.py` starts `uvicorn app.main:app`
Config: `package.json` (`"type": "module"`), `tsconfig.json`. CI: `.github/workflows/ci.yml`
Use `@/components/button.tsx`, `react-router/dom`, `text/html`, `Content-Type: application/json`, `yyyy/mm/dd`.
""",
    ".cursorrules": """A FastAPI/React app. Put routers in `routers/NAME.py`, for example `routers/users.py`.
Prefer `async/await`; `if/else`; `pages/` is no longer used. Read [guide](docs/guide.md). Client/server, `i18n/en`.
""",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")
    (tmp_path / ".gitignore").write_text("# made\n/var/\nsecret.*\n")
    return tmp_path


def dead(root: Path, text: str, name: str = "AGENTS.md") -> list[tuple[int, str]]:
    (root / name).write_text(text)
    return [(one.line, one.name) for one in dead_references([str(root / name)], str(root))]


@pytest.mark.parametrize("line", DEAD)
def test_what_is_not_there_is_named_with_its_line(line: str, root: Path) -> None:
    assert dead(root, f"# Rules\n\n{line}\n") == [(3, DEAD[line])]


def test_what_may_mean_something_else_is_passed_over(root: Path) -> None:
    assert dead(root, FINE) == []


@pytest.mark.parametrize("name", OTHERS)
def test_instructions_as_people_write_them_name_nothing_dead(name: str, root: Path) -> None:
    assert dead(root, OTHERS[name], name) == []


def test_names_are_resolved_from_the_folder_of_the_file_as_well(root: Path) -> None:
    (root / "web/AGENTS.md").write_text("`src/app.tsx` and `src/gone.tsx`, [up](../docs/guide.md)\n")
    assert [one.name for one in dead_references([str(root / "web/AGENTS.md")], str(root))] == ["src/gone.tsx"]


def test_our_own_rules_name_nothing_dead() -> None:
    assert list(dead_references([str(ROOT / "AGENTS.md"), str(ROOT / "CONTRIBUTING.md")], str(ROOT))) == []


def test_a_file_that_cannot_be_read_names_nothing(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").mkdir()
    assert list(dead_references([str(tmp_path / "AGENTS.md"), str(tmp_path / "none")], str(tmp_path))) == []
