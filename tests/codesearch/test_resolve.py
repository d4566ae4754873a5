"""Imports to files."""

import pytest

from codewhale.codesearch.resolve import Resolver

PATHS = [
    "src/app/__init__.py", "src/app/keys.py", "src/app/store/__init__.py", "web/index.ts", "web/lib/pool.ts",
    "web/lib/index.ts", "cmd/main.go", "pkg/store/store.go", "pkg/store/store_test.go", "include/deep/whale.h",
    "src/whale.cc", "crate/src/lib.rs", "crate/src/net/mod.rs", "crate/src/net/tcp_stream.rs",
    "java/org/sea/Whale.java", "lib/deep/whale.ex", "lib/sea.ex", "lib/port.rb", "zig/main.zig", "zig/sea.zig",
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "lang", "written", "target"),
    [
        ("src/app/store/__init__.py", "python", "app.keys", "src/app/keys.py"),
        ("src/app/keys.py", "python", ".store", "src/app/store/__init__.py"),
        ("src/app/store/__init__.py", "python", "..keys", "src/app/keys.py"),
        ("src/app/keys.py", "python", ".", "src/app/__init__.py"),
        ("src/app/keys.py", "python", "os.path", ""),
        ("web/index.ts", "typescript", "./lib/pool", "web/lib/pool.ts"),
        ("web/index.ts", "typescript", "./lib/pool.js", "web/lib/pool.ts"),
        ("web/index.ts", "typescript", "./lib", "web/lib/index.ts"),
        ("web/index.ts", "typescript", "react", ""),
        ("cmd/main.go", "go", "example.com/sea/pkg/store", "pkg/store/store.go"),
        ("cmd/main.go", "go", "fmt", ""),
        ("src/whale.cc", "cpp", "deep/whale.h", "include/deep/whale.h"),
        ("crate/src/lib.rs", "rust", "crate::net::tcp_stream::TcpStream", "crate/src/net/tcp_stream.rs"),
        ("crate/src/lib.rs", "rust", "net", "crate/src/net/mod.rs"),
        ("java/org/sea/Whale.java", "java", "org.sea.Whale", "java/org/sea/Whale.java"),
        ("lib/sea.ex", "elixir", "Deep.Whale", "lib/deep/whale.ex"),
        ("zig/main.zig", "zig", "sea.zig", "zig/sea.zig"),
        ("lib/port.rb", "ruby", "./port", "lib/port.rb"),
    ],
)
def test_what_an_import_means(path: str, lang: str, written: str, target: str) -> None:
    found = Resolver(PATHS).targets(PATHS.index(path), lang, written)
    assert [PATHS[number] for number in found] == ([target] if target else [])


def test_what_could_be_many_files_is_none() -> None:
    paths = [f"p{number}/keys.py" for number in range(9)]
    assert Resolver(paths).targets(0, "python", "keys") == []
