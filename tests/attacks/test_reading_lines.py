"""Lines that look as if they only read: what starts a program, takes code or options from the tree, or reads elsewhere
is asked about, and where nothing of that is there the same line is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codewhale.permissions.shell.judge import ShellContext, analyse

HERE = ShellContext("/root/project", "", "/root")


def asked(lines: str, context: ShellContext = HERE) -> None:
    """Each of the lines, one a row, is asked about."""
    rows = [line for line in lines.splitlines() if line.strip()]
    assert [line for line in rows if analyse(line, context).verdict == "allow"] == []


def allowed(lines: str, context: ShellContext = HERE) -> None:
    """None of them is."""
    rows = [line for line in lines.splitlines() if line.strip()]
    assert {line: said.reason for line in rows if (said := analyse(line, context)).verdict != "allow"} == {}


def place(folder: Path) -> ShellContext:
    """A workspace with a file, and a folder beside it that is not its own."""
    (folder / "w" / "src").mkdir(parents=True)
    (folder / "w" / "a.txt").write_text("a\n")
    (folder / "w" / "src" / "b.py").write_text("b\n")
    (folder / "outside").mkdir()
    (folder / "outside" / "x").write_text("outside\n")
    return ShellContext(str(folder / "w"), "", "/root")


def test_a_question_for_a_version_runs_no_input() -> None:
    asked("""
cat f | zsh -V
zsh -V < f
cat f | bash --version
bash --version < f
cat f | python3 -V
cat f | (perl -v)
ruby -v < f
cat f | dash --version
echo 'touch x' | node -v
sh --version <<< 'touch x'
{ zsh -V; } < f
cat f | while read x; do zsh --version; done
node sandboxed
java sandboxed
python3 chosen
flake8 --version
poetry --version
bundle --version
""")
    allowed("bash --version\npython3 -V\nnode -v")


def test_scripts_of_sed_are_read_as_sed_reads_them() -> None:
    asked(r"""
sed 's/[/]a/p;/e;s/p;/p/' f
sed -n 's/[/]a/p;/w o/p' f
sed 's|[|]a|p;|e;s|p;|p|' f
sed -n '/[/]/e;/p' f
sed 's/[^/]a/p;/e' f
sed 's/[]/]a/x/e;s/y/z/' f
sed 's/[[:alpha:]/]/x;/e;s/x//' f
sed 's/a/b/w o' f
sed 's/a/b/e' f
sed 's/a/b/;e touch x' f
sed '1r /etc/passwd' f
sed --expression=e f
sed -n '/a/,/[/]b/w o/p' f
sed 's/a[/b/w o;]//' f
sed 'y/[/]/w o;/' f
""")
    allowed(r"""
sed -n '1,5p' f
sed 's/[[:space:]]*$//' f
sed -E 's/[^a-z]+/-/g;s/a|b/c/' f
sed ':a;N;$!ba;s/\n/ /g' f
sed -n '/[0-9]/p' f
sed -n '/^def /,/^$/p' f
sed 's|[a/]b|c|' f
sed -n '$=' f
""")


def test_xargs_runs_no_name_of_a_file() -> None:
    asked("""
find . | xargs xargs
find . | xargs env xargs
find . | xargs nice xargs
find . | xargs timeout 5 xargs
find . | xargs xargs -n
find . | xargs xargs -n1
find . | xargs env
find . | xargs nice
find . | xargs timeout 5
find . | xargs command
find . | xargs sh -c
find . | xargs sh
find . | xargs bash -c ls
find . | xargs stdbuf -o0
find . | xargs env nice timeout 5
find . | xargs sed -n
find . | xargs awk
find . | xargs sort
find . | xargs git
find . | xargs strings
find . | xargs nm
git ls-files | xargs wc -l
git ls-files | xargs -n1 wc -l
cat list | xargs cat
echo /etc/passwd | xargs cat
find / | xargs cat
find . -printf '%f' | xargs cat
""")
    allowed("find . -name '*.py' | xargs wc -l\nrg -l x | xargs grep -n y\nfind . -type f | xargs -n1 head -3")


@pytest.mark.parametrize("name", ["--files0-from=x", "x y", "a'b", "@x", "sub/-n", "sub/x /etc"])
def test_xargs_is_asked_about_where_names_are_odd(tmp_path: Path, name: str) -> None:
    context = place(tmp_path)
    allowed("find . -type f | xargs -n1 wc -l", context)
    (tmp_path / "w" / name).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / "w" / name).write_text("")
    asked("find . -type f | xargs -n1 wc -l\nrg --files | xargs cat", context)


def test_options_are_not_taken_from_files() -> None:
    asked("""
nm @opts
nm -D @opts
size @opts
strings @opts
readelf -h @opts
gcc @opts
java @args
nm --plugin x a
nm -l a.out
readelf -w a.out
""")
    allowed("nm -D a.out\nstrings a.out\nsize a.out\nreadelf -h a.out")


@pytest.mark.parametrize(("name", "text", "line"), [
    ("rust-toolchain.toml", '[toolchain]\npath = "./evil"\n', "cargo --version"),
    ("rust-toolchain", "[toolchain]\npath = 'evil'\n", "rustc --version"),
    (".tool-versions", "nodejs path:./evil\n", "node --version"),
    ("src/.tool-versions", "python path:../evil\n", "cd src && python3 --version"),
    (".tool-versions", "python path:./evil\n", "cd src && python3 --version"),
    ("conftest.py", "", "python3 -m pytest --version"),
    ("tests/conftest.py", "", "python3 -m pytest --version"),
    ("pytest.ini", "[pytest]\naddopts = -p evil\n", "pytest --version"),
    ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '-p evil'\n", "python3 -m pytest --version"),
    ("setup.cfg", "[tool:pytest]\naddopts = -p evil\n", "pytest --version"),
    ("random.py", "", "python3 -m pytest --version"), ("pip/__init__.py", "", "python3 -m pip --version"),
])  # fmt: skip
def test_a_file_that_chooses_what_a_version_is_asked_of_is_seen(
    tmp_path: Path, name: str, text: str, line: str
) -> None:
    context = place(tmp_path)
    allowed(line, context)
    (tmp_path / "w" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "w" / name).write_text(text)
    asked(line, context)


PLANTED = """
import sys
from codewhale.permissions.shell.judge import ShellContext, analyse
print([analyse(line, ShellContext(sys.argv[1], "", "/root")).rule for line in ("ls -l", "cat x | wc -l", "git status")])
"""


@pytest.mark.parametrize("folder", [".venv/bin", "", "."])
def test_a_program_of_the_workspace_is_no_program_of_the_machine(tmp_path: Path, folder: str) -> None:
    context = place(tmp_path)
    at = tmp_path / "w" / folder
    at.mkdir(parents=True, exist_ok=True)
    path = f"{at if folder == '.venv/bin' else folder}:{os.environ['PATH']}"

    def rules() -> str:
        words = (sys.executable, "-c", PLANTED, context.workspace)
        return subprocess.run(
            words, env={**os.environ, "PATH": path}, check=True, capture_output=True, text=True
        ).stdout

    assert rules().strip() == "['shell.reads', 'shell.reads', 'shell.reads']"
    for name in ("ls", "wc", "git"):
        (at / name).write_text("#!/bin/sh")
    assert rules().strip() == "['shell.project-code', 'shell.project-code', 'shell.project-code']"


def test_git_in_another_repository_is_asked_about(tmp_path: Path) -> None:
    context = place(tmp_path)
    for folder in ("w", "w/other", "w/other/deep"):
        (tmp_path / folder).mkdir(exist_ok=True)
    subprocess.run(["git", "init", "-q", str(tmp_path / "w")], check=True)
    lines = """
git -C other status
git -C other diff
git -C other/deep blame a
git -C other ls-files -m
git -C other grep x
git -C other describe --dirty
git -C other diff-files
cd other && git diff
cd other/deep; git status
(cd other; git log)
for d in other; do git -C $d status; done
bash -c 'cd other && git status'
"""
    allowed(lines, context)
    subprocess.run(["git", "init", "-q", str(tmp_path / "w" / "other")], check=True)
    subprocess.run(["git", "-C", str(tmp_path / "w" / "other"), "config", "core.fsmonitor", "touch x"], check=True)
    asked(lines, context)
    allowed("git status\ngit diff\ngit log", context)
    subprocess.run(["git", "-C", str(tmp_path / "w"), "config", "core.fsmonitor", "touch x"], check=True)
    asked("git status\ngit diff\ngit log", context)


def test_git_starts_no_program_that_checks_signatures() -> None:
    asked("""
git log --format=%G?
git log --format='%h %GK'
git log --pretty=format:%GS
git log --pretty='%an %-GG'
git show --format=%GP
git show --show-signature
git for-each-ref --format='%(signature)'
git branch --format='%(signature:grade)'
git tag -l --format='%(*signature)'
git tag -v x
git log --show-signature
git --git-dir=x status
git --work-tree=x status
git -c core.fsmonitor=x status
GIT_DIR=x git status
env GIT_DIR=x git status
git grep --recurse-submodules x
git ls-files --recurse-submodules
git diff --submodule=diff
git log -p --submodule=diff
git diff --ext-diff
git log -p --textconv
git grep -O x
""")
    allowed("git log --format='%h %an %s'\ngit branch --format='%(refname)'\nPAGER=cat git log -3")
    allowed("git config user.name\ngit config --get user.email")


def test_reading_elsewhere_is_asked_about() -> None:
    asked("""
wc --files0-from=list
wc --files0=list
wc --files0-from list
du --files0-from=list
du -X list
du -aX list
du --exclude-from=list
grep -f /etc/passwd x
grep -nf/etc/passwd x
grep --file=list x
grep --fil=list x
hexdump -f fmt x
sha256sum -c sums
md5sum --check sums
md5sum --ch sums
ps -auxe
ps auxe
ps -eo pid,environ
ps -o environ
ps axe
ps -E
ps e
ps -ef e
ps --format pid
cat /proc/self/environ
cat /proc/1/environ
cat /proc/*/environ
cat < /proc/self/environ
sort --files0-from=x
uniq - PWNED
xxd - PWNED
column -d /etc/passwd
cut -z /etc/passwd
paste -s /etc/passwd
date -f list
date -r /etc/passwd
awk 1 /etc/passwd
""")


def test_what_a_value_may_be_is_asked_about() -> None:
    asked("""
cd sub; cat ../../etc
cd nowhere; cat ../x
cd a || cd b; cat ../x
cd a/b; cat ../../../x
printenv
printenv API_KEY
printenv AWS_SECRET_ACCESS_KEY
echo $API_KEY
echo ${OPENAI_API_KEY}
cat $x
cat "$x"
ls $(cat list)
cat $(cat list)
echo $(cat list)
for f in $(cat list); do cat $f; done
cat list | while read f; do cat "$f"; done
while read f; do wc -l $f; done < list
read f < list; cat "$f"
x=/etc/passwd; cat $x
for f in /etc/passwd; do cat $f; done
for f in a ../../x; do cat $f; done
f=a; for i in 1 2; do cat $f; f=/etc/passwd; done
for d in a b; do cd $d; cat ../x; done
read PATH; ls
read path; zsh -c ls
PATH=.
for PATH in .; do ls; done
LD_PRELOAD=x ls
x=1 LD_PRELOAD=x ls
TZ=/etc/passwd date
IFS=/ ls
printf -v PATH x
for p in p 'e touch x'; do sed -n "$p" f; done
zsh -c 'ls *(e:id:)'
zsh -c 'ls **/x'
echo $((a[1]))
[[ -v a[1] ]]
test -v 'a[$(id)]'
for i in 1; do echo $((x)); done
""")


LINKS = """
cat LINK
cat src/LINK
head -1 LINK/x
cat LINK/../outside/x
cat *.txt
cat src/*
wc -l < LINK
cd LINK; cat x
cd LINK && ls
for f in *.txt; do cat $f; done
grep -R x .
grep -rR x src
diff -r src a
rg --follow x
rg -L x
fd -L x
ls -LR
du -L
find . | xargs cat
find -L . -type f | xargs cat
find -L . -name x
find . -follow
find . -newer LINK/x
test -f LINK/x
sort < LINK
bash -c 'cat LINK'
cat "$PWD/LINK"
cat ./LINK
"""


@pytest.mark.parametrize("target", ["outside", "outside/x", "/etc/passwd", "w/hop"])
def test_links_that_lead_out_are_followed_before_the_command_does(tmp_path: Path, target: str) -> None:
    context = place(tmp_path)
    lines = LINKS.replace("LINK", "l.txt")
    inside = "\n".join(line for line in lines.splitlines() if "outside" not in line)
    for folder in ("w", "w/src"):
        (tmp_path / folder / "l.txt").mkdir()
    allowed(inside, context)
    for folder in ("w", "w/src"):
        (tmp_path / folder / "l.txt").rmdir()
        (tmp_path / folder / "l.txt").symlink_to(tmp_path / target)
        (tmp_path / folder / "hop").symlink_to(tmp_path / "outside")
    asked(lines, context)
    allowed("cat a.txt\ngrep -r x .\nls -l\nfind . -name x", context)


def test_links_are_followed_on_and_on(tmp_path: Path) -> None:
    context = place(tmp_path)
    (tmp_path / "w" / "lib").mkdir()
    (tmp_path / "w" / "src" / "lib").symlink_to("../lib")
    (tmp_path / "w" / "lib" / "back").symlink_to("../src")
    lines = "grep -R x src\nrg -L x src\ncd src && find .. | xargs cat\ncd src && find -L . -type f | xargs cat"
    allowed(lines, context)
    (tmp_path / "w" / "lib" / "out").symlink_to(tmp_path / "outside")
    asked(lines, context)


def test_a_secret_behind_a_link_is_one(tmp_path: Path) -> None:
    context = place(tmp_path)
    (tmp_path / "w" / ".env").write_text("X=1")
    (tmp_path / "w" / "notes.md").symlink_to(".env")
    assert analyse("cat notes.md", context).rule == analyse("cat *.md", context).rule == "shell.secret-read"


def test_a_secret_in_a_list_of_names_is_one(tmp_path: Path) -> None:
    context = place(tmp_path)
    allowed("find . | xargs cat\nfind . -name '*.py' | xargs cat\nrg --files | xargs cat", context)
    (tmp_path / "w" / "src" / ".env").write_text("X=1")
    asked("find . | xargs cat\nfind . -type f | xargs -n1 head\nrg --files --hidden | xargs cat", context)
    allowed("find . -name '*.py' | xargs cat\nrg --files | xargs cat", context)


# What is known to make a program start another, write, or read what it is not given, for programs that may be called.
TRICKS = (Path(__file__).parent.parent / "permissions" / "shell" / "lines" / "tricks.txt").read_text()


def test_known_tricks_of_programs_that_read_are_asked_about() -> None:
    asked("\n".join(line for line in TRICKS.splitlines() if not line.startswith("#")))


def test_a_pattern_is_asked_about_where_a_name_is_an_option(tmp_path: Path) -> None:
    context = place(tmp_path)
    allowed("cat *.txt\nwc -l *\ndu -sh *\nls *.txt", context)
    (tmp_path / "w" / "--files0-from=x.txt").write_text("")
    asked("cat *.txt\nwc -l *\ndu -sh *\nls *.txt", context)


def test_a_folder_is_what_it_is_when_the_command_runs(tmp_path: Path) -> None:
    context = place(tmp_path)
    allowed("cd src && cat ../a.txt\ncd src; cat ../a.txt\n(cd src; ls); cat a.txt\ncd src && cd .. && ls", context)
    asked("cd gone; cat ../a.txt\ncd src && cd ..; cat ../outside/x\n(cd src); cat ../outside/x", context)
    asked(
        "false && cd src; cat ../outside/x\ncd src || cd ..; cat ../outside/x\ncd src | cat; cat ../outside/x", context
    )
