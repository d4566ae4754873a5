"""Rule files as people write them for five other programs, each with what that program's papers say of it: when it
applies, by which globs, and which text is told."""

from typing import NamedTuple

ALWAYS, GLOB, MODEL, MANUAL, NONE = "always", "glob", "model", "manual", ""


class RuleCase(NamedTuple):
    """A file, what stands in it, and how it is understood: `mode` "" is a file that is no rule, and `says` then a part
    of the reason."""

    path: str
    text: str
    mode: str
    globs: tuple[str, ...] = ()
    says: str = ""


def _headed(head: str, body: str = "Use tabs.") -> str:
    return f"---\n{head}\n---\n\n{body}\n"


CURSOR = [
    ("always.mdc", _headed("description:\nglobs:\nalwaysApply: true"), ALWAYS, ()),
    ("always-wins.mdc", _headed("description: For APIs\nglobs: *.ts\nalwaysApply: true"), ALWAYS, ()),
    ("comma.mdc", _headed("description:\nglobs: *.ts,src/**/*.py\nalwaysApply: false"), GLOB, ("*.ts", "src/**/*.py")),
    ("spaced.mdc", _headed("globs: src/**/*.ts, tests/**/*.ts"), GLOB, ("src/**/*.ts", "tests/**/*.ts")),
    ("braces.mdc", _headed("globs: **/*.{ts,tsx},*.css"), GLOB, ("**/*.{ts,tsx}", "*.css")),
    ("quoted.mdc", _headed('globs: "*.a","*.b"'), GLOB, ("*.a", "*.b")),
    ("list.mdc", _headed('globs: ["**/*.go", "go.mod"]'), GLOB, ("**/*.go", "go.mod")),
    ("bare-list.mdc", _headed('globs: [**/*.vue, "a b/*.ts"]'), GLOB, ("**/*.vue", "a b/*.ts")),
    ("set.mdc", _headed("globs: [ab]*.py"), GLOB, ("[ab]*.py",)),
    ("lines.mdc", _headed("globs:\n  - **/*.rs\n  - Cargo.toml"), GLOB, ("**/*.rs", "Cargo.toml")),
    ("both.mdc", _headed("description: For views\nglobs: src/views/**"), GLOB, ("src/views/**",)),
    ("asked.mdc", _headed("description: Use when: writing SQL\nglobs:\nalwaysApply: false"), MODEL, ()),
    ("none.mdc", _headed("description:\nglobs:\nalwaysApply: false"), MANUAL, ()),
    ("bare.mdc", "Use tabs.\n", MANUAL, ()),
    ("deep/inner.mdc", _headed("alwaysApply: true"), ALWAYS, ()),
    ("open.mdc", "---\nalwaysApply: true\nUse tabs.\n", NONE, ()),
]
WINDSURF = [
    ("on.md", _headed("trigger: always_on"), ALWAYS, ()),
    ("on-described.md", _headed("trigger: always_on\ndescription: For all\nglobs:"), ALWAYS, ()),
    ("files.md", _headed("trigger: glob\nglobs: **/*.py"), GLOB, ("**/*.py",)),
    ("more-files.md", _headed("trigger: glob\ndescription:\nglobs: *.js, src/**/*.ts"), GLOB, ("*.js", "src/**/*.ts")),
    ("decided.md", _headed("trigger: model_decision\ndescription: When you change the schema"), MODEL, ()),
    ("by-hand.md", _headed("trigger: manual"), MANUAL, ()),
    ("by-hand-too.md", _headed("trigger: manual\nglobs: *.x\ndescription: d"), MANUAL, ("*.x",)),
    ("plain.md", "Use tabs.\n", ALWAYS, ()),
    ("odd.md", _headed("trigger: sometimes"), NONE, ()),
    ("unnamed.md", _headed("trigger: glob\nglobs:"), NONE, ()),
]
CLINE = [
    ("01-style.md", "Use tabs.\n", ALWAYS, ()),
    ("02-notes.txt", "Use tabs.\n", ALWAYS, ()),
    ("03-front.md", _headed('paths:\n  - "src/components/**"\n  - "src/hooks/**"'), GLOB,
     ("src/components/**", "src/hooks/**")),
    ("04-noted.md", _headed('paths:\n  - "src/**"           # all of it\n  - "*.config.js"      # those of the root'),
     GLOB, ("src/**", "*.config.js")),
    ("05-folder.md", _headed('paths:\n  - "packages/*/src/"'), GLOB, ("packages/*/src/",)),
    ("06-braces.md", _headed('paths: ["packages/{web,api}/**"]'), GLOB, ("packages/{web,api}/**",)),
    ("07-off.md", _headed("paths: []"), NONE, ()),
    ("08-other.md", _headed("title: Tabs\nauthor: me"), ALWAYS, ()),
    ("09-broken.md", _headed("paths:\n  - **/*.ts"), ALWAYS, ()),
    ("team/10-inner.md", "Use tabs.\n", ALWAYS, ()),
]  # fmt: skip
CLAUDE = [
    ("all.md", "Use tabs.\n", ALWAYS, ()),
    ("headed.md", _headed("title: Tabs"), ALWAYS, ()),
    ("api.md", _headed('paths:\n  - "src/api/**/*.ts"\n  - "tests/**/*.test.ts"'), GLOB,
     ("src/api/**/*.ts", "tests/**/*.test.ts")),
    ("one.md", _headed("paths: src/**/*.{ts,tsx}"), GLOB, ("src/**/*.{ts,tsx}",)),
    ("bare-star.md", _headed("paths: **/*.ts"), GLOB, ("**/*.ts",)),
    ("bare-brace.md", _headed("paths: {src,lib}/**/*.ts, tests/**/*.test.ts"), GLOB,
     ("{src,lib}/**/*.ts", "tests/**/*.test.ts")),
    ("bare-list.md", _headed("paths:\n  - **/*.py\n  - src/*"), GLOB, ("**/*.py", "src/*")),
    ("root.md", _headed('paths: ["*.md"]'), GLOB, ("*.md",)),
    ("front/react.md", _headed("paths: src/components/*.tsx"), GLOB, ("src/components/*.tsx",)),
    ("windows.md", _headed("paths: src/**").replace("\n", "\r\n"), GLOB, ("src/**",)),
    ("marked.md", "\ufeff" + _headed("paths: src/**"), GLOB, ("src/**",)),
    ("empty.md", "\n\n", NONE, ()),
]  # fmt: skip
COPILOT = [
    ("ruby.instructions.md", _headed('applyTo: "app/models/**/*.rb"'), GLOB, ("app/models/**/*.rb",)),
    ("ts.instructions.md", _headed('applyTo: "**/*.ts,**/*.tsx"'), GLOB, ("**/*.ts", "**/*.tsx")),
    ("spaced.instructions.md", _headed("applyTo: '**/*.ts, **/*.tsx'"), GLOB, ("**/*.ts", "**/*.tsx")),
    ("every.instructions.md", _headed('applyTo: "**"'), GLOB, ("**",)),
    ("bare.instructions.md", _headed("applyTo: **/*.py"), GLOB, ("**/*.py",)),
    ("src.instructions.md", _headed("description: Python\napplyTo: src/*.py"), GLOB, ("src/*.py",)),
    ("review.instructions.md", _headed('applyTo: "**"\nexcludeAgent: "code-review"'), GLOB, ("**",)),
    ("not-us.instructions.md", _headed('applyTo: "**"\nexcludeAgent: "coding-agent"'), NONE, ()),
    ("nor-here.instructions.md", _headed('applyTo: "**"\nexcludeAgent: "cloud-agent"'), NONE, ()),
    ("described.instructions.md", _headed("description: When you write tests"), MODEL, ()),
    ("attached.instructions.md", "Use tabs.\n", MANUAL, ()),
    ("sub/go.instructions.md", _headed('applyTo: "**/*.go"'), GLOB, ("**/*.go",)),
]
FOLDERS = {
    "cursor": (".cursor/rules", CURSOR), "windsurf": (".windsurf/rules", WINDSURF), "cline": (".clinerules", CLINE),
    "claude": (".claude/rules", CLAUDE), "copilot": (".github/instructions", COPILOT),
}  # fmt: skip
# What programs read without a header, whole and always, and what they do not read.
ALONE = [
    RuleCase(".cursorrules", "---\nalwaysApply: false\n---\nUse tabs.\n", ALWAYS, (), "alwaysApply: false"),
    RuleCase(".windsurfrules", "Use tabs.\n", ALWAYS, (), "Use tabs."),
    RuleCase(".github/copilot-instructions.md", "# Tabs\nUse tabs.\n", ALWAYS, (), "# Tabs\nUse tabs."),
]
UNREAD = [".cursor/rules/notes.md", ".windsurf/rules/deep/x.md", ".claude/rules/x.txt", ".github/instructions/x.md",
          ".clinerules/hooks/x.md", ".clinerules/workflows/x.md", ".cursor/other/x.mdc"]  # fmt: skip


def cases() -> list[RuleCase]:
    says = {"07-off.md": "never applies", "odd.md": "trigger", "unnamed.md": "names none", "open.mdc": "does not end",
            "empty.md": "no text"}  # fmt: skip
    found = list(ALONE)
    for folder, rows in FOLDERS.values():
        for name, text, mode, globs in rows:
            reason = says.get(name, "coding agents") if mode == NONE else "Use tabs."
            found.append(RuleCase(f"{folder}/{name}", text, mode, globs, reason))
    return found
