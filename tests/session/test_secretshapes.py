"""Keys that are known by their shape, in plain text and in JSON; and what only looks a little like one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.session.secretshapes import PIECES, Shapes, hide_shapes, is_key
from support.keys import KEYS, PEM


@pytest.mark.parametrize("name", KEYS)
def test_a_key_is_hidden_wherever_it_stands(name: str) -> None:
    key = KEYS[name]
    assert is_key(key)
    for text in (
        key, f"the key is {key}.", f"a: {key}\nb", f'x = "{key}"', f"KEY={key}", f"({key})", f"\x1b[31m{key}\x1b[0m",
        f"{key}é", f"https://x.example.com/?q={key}", f"--token={key} --more", f"`{key}`", f"'{key}',", f"<{key}>",
        f"a\t{key}\r\n",
    ):  # fmt: skip
        for form in (
            text,
            json.dumps(text),
            json.dumps(json.dumps(text)),
            json.dumps({"a": [text]}, ensure_ascii=False),
        ):
            assert key not in hide_shapes(form) and key[6:-6] not in hide_shapes(form), form


@pytest.mark.parametrize("name", KEYS)
def test_what_is_hidden_is_hidden_once_and_json_stays_json(name: str) -> None:
    text = json.dumps({"a": f"x {KEYS[name]} y", "b": [KEYS[name]]})
    hidden = hide_shapes(text)
    assert hide_shapes(hidden) == hidden and set(json.loads(hidden)) == {"a", "b"}
    assert json.loads(hidden)["a"].startswith("x [redacted ")


def test_private_keys_are_hidden_whole_and_cut() -> None:
    for form in (PEM, json.dumps(PEM), json.dumps(json.dumps(PEM))):
        assert "MIIE" not in hide_shapes(f"a {form} b") and hide_shapes(f"a {form} b").endswith(" b")
    listed = [
        json.dumps({"path": "a.pem", "line": number, "text": line}) for number, line in enumerate(PEM.split("\n"))
    ]
    assert "MIIE" not in hide_shapes("\n".join(listed)) and "MIIE" not in hide_shapes(json.dumps(listed))
    assert hide_shapes("x " + "a1B2" * 16) == "x " + "a1B2" * 16
    assert hide_shapes(PEM[:200]) == "[redacted private key]"
    assert hide_shapes(f"{PEM[:150]}\n... cut").startswith("[redacted private key]")
    assert hide_shapes("-----BEGIN PUBLIC KEY-----\nMIIE\n") == "-----BEGIN PUBLIC KEY-----\nMIIE\n"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("postgres://me:hunter2x@db/x", "postgres://me:[redacted password]@db/x"),
        ("redis://:s3cret@h:1", "redis://:[redacted password]@h:1"),
        ("Authorization: Bearer abc123def456", "Authorization: Bearer [redacted credential]"),
        ('{"authorization": "Basic dXNlcjpwdzEyMw=="}', '{"authorization": "Basic [redacted credential]"}'),
        ("DB_PASSWORD=hunter2hunter2", "DB_PASSWORD=[redacted value]"),
        ("A=b\nMY_TOKEN='abc12345'\n", "A=b\nMY_TOKEN='[redacted value]'\n"),
        ("GET /x?api_key=abcd1234efgh&b=1", "GET /x?api_key=[redacted query value]&b=1"),
        ("https://b.s3.amazonaws.com/o?X-Amz-Signature=0123456789abcdef", None),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AWS_SECRET_ACCESS_KEY=[redacted value]"),
    ],
)
def test_what_stands_behind_a_telling_name(text: str, hidden: str | None) -> None:
    assert hide_shapes(text) == hidden if hidden else "[redacted" in hide_shapes(text)
    inside = json.dumps(json.dumps(text))
    assert json.loads(json.loads(hide_shapes(inside))) == hide_shapes(text)


@pytest.mark.parametrize(
    "text",
    [
        ".sk-cube-grid .sk-fading-circle-container-wide { }",
        "task-0123456789abcdef01234",
        "risk-free-0123456789abcdefgh",
        "api_key = os.environ['API_KEY']",
        "TOKEN=$(cat file)",
        "TOKEN=${{ secrets.TOKEN }}",
        "SECRET=",
        "API_KEY=your-key-here",
        "CACHE_KEY=v1-dependencies-2024-10-11",
        "PWD=/home/me/project1",
        "max_tokens=12345678",
        "password: str",
        "TOKEN=<token>",
        "https://example.com:8080/a@b",
        "http://[::1]:80/",
        "git@github.com:a/b.git",
        "ssh://git@example.com/x",
        "?token=short",
        "https://user@example.com/",
        "the Authorization: header",
        "Bearer token",
        "sha256:" + "a" * 64,
        "e3b0c44298fc1c149afbf4c8996fb924",
        "ghp_short",
        "AKIA",
        "eyJhbGciOiJIUzI1NiJ9",
        "SKETCH",
        "monkey-0123456789abcdef0123456789abcdef0",
        "import hf_transfer",
        "key-value",
        "std::string s;",
        "http://${USER}:${PASS}@host/",
        "://:@",
        "PRIVATE KEY",
        "-----BEGIN",
    ],
)
def test_what_is_no_key_stays(text: str) -> None:
    assert hide_shapes(text) == text and hide_shapes(json.dumps(text)) == json.dumps(text)


@given(st.lists(st.one_of(st.sampled_from([*PIECES, *KEYS.values()]), st.text(max_size=20)), max_size=12))
def test_any_text_comes_out_the_same_twice_and_stays_json(parts: list[str]) -> None:
    text = " ".join(parts)
    hidden = hide_shapes(text)
    assert hide_shapes(hidden) == hidden
    assert isinstance(json.loads(hide_shapes(json.dumps(text))), str)


def test_prefixes_of_ones_own_are_replaced_with_the_known_or_without() -> None:
    key, own = "ghp_" + "a1B2" * 8, "acme_live_9f8e7d6c5b"
    text = f"x={own} {key} notacme_live_9f8e7d6c5b acme_live_short"
    assert Shapes(False, ("acme_live_",)).hide(text) == text.replace(f"={own}", "=[redacted key]")
    both = Shapes(True, ("acme_", "acme_live_")).hide(text)
    assert own not in both.replace("not" + own, "") and key not in both
    assert Shapes(False).hide(text) == text
    assert Shapes(False, ("acme_live_",)).hide(f"\\n{own}") == "\\n[redacted key]"
