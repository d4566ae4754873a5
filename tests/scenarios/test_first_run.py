"""The first run through the real program on a terminal: a server connected by its address, remembered, and what leads
on when a key is rejected, a model is gone or nobody answers."""

from pathlib import Path

import pytest

from support.modelserver import ModelServer, closed_port, running
from support.program import codewhale_program, configure
from support.terminal import WARM, Terminal, environment

ENTER = "\r"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


def opened(home: Path, shop: Path, **environ: str) -> Terminal:
    place = environment(home, CODEWHALE_HOME=str(home / "state"), **environ)
    return Terminal(WARM, place, cwd=shop, size=(100, 30))


@pytest.mark.parametrize("scheme", ["", "http://", "https://"])
def test_a_local_server_is_connected_with_its_address_and_two_keys_and_remembered(
    tmp_path: Path, shop: Path, scheme: str
) -> None:
    with running(ModelServer(["alpha", "beta"])) as server:
        name = f"local-{server.address.rpartition(':')[2]}"
        with opened(tmp_path, shop) as terminal:
            terminal.sees("Connect a model", "Try the demo")
            terminal.type(scheme + server.address)
            terminal.sees(f"Connect to {scheme}{server.address}")
            terminal.type(ENTER)
            terminal.sees("alpha", "beta", "2 models")
            terminal.type(ENTER)
            terminal.sees(f"Connected: alpha at {name}.")
            terminal.type("Hello")
            terminal.type(ENTER)
            terminal.sees("OK.")
            terminal.type("/model beta")
            terminal.type(ENTER)
            terminal.sees(f"{name}/beta")
        with opened(tmp_path, shop) as terminal:
            assert "Connect a model" not in terminal.sees(f"{name}/beta")
        done = codewhale_program(tmp_path, "exec", "-w", str(shop), "--output-format", "json", "Hello")
        assert (done.returncode, '"OK."' in done.stdout) == (0, True)
        assert b"beta" not in (tmp_path / "state" / "config.toml").read_bytes()
    assert not list(shop.iterdir())


def test_a_rejected_key_leads_to_login_and_on(tmp_path: Path, shop: Path) -> None:
    with running(ModelServer(["alpha"], key="sk-right-one")) as server:
        configure(tmp_path, f'provider = "box"\nmodel = "alpha"\n[providers.box]\nbase_url = "{server.url}"\n')
        with opened(tmp_path, shop) as terminal:
            terminal.sees("box/alpha")
            terminal.type("Hello")
            terminal.type(ENTER)
            terminal.sees("box rejected the key (401). /login to change it.", "Incorrect API key provided")
            terminal.type("/login box")
            terminal.type(ENTER)
            terminal.sees("API key for box.")
            terminal.type("sk-wrong-one")
            terminal.type(ENTER)
            terminal.sees("box rejected the key (401): HTTP 401")
            assert "sk-wrong" not in terminal.text
            terminal.type("\x15")
            terminal.sees("│ key ")
            terminal.type("sk-right-one")
            terminal.type(ENTER)
            terminal.sees("box accepted the key; it is stored.")
            terminal.type("/retry")
            terminal.type(ENTER)
            terminal.sees("OK.")
            assert "sk-right" not in terminal.text
        for flag, code in (("", 0), ("--offline", 0)):
            done = codewhale_program(tmp_path, "doctor", *([flag] if flag else []), "-w", str(shop))
            assert done.returncode == code and ("box answers" in done.stdout) is (flag == "")


def test_a_server_that_is_gone_and_a_model_that_is_gone_lead_on(tmp_path: Path, shop: Path) -> None:
    with running(ModelServer(["alpha"])) as server:
        tables = f'[providers.box]\nbase_url = "{server.url}"\nrequest_retries = 0\n'
        tables += f'[providers.gone]\nbase_url = "http://127.0.0.1:{closed_port()}/v1"\nrequest_retries = 0\n'
        configure(tmp_path, f'provider = "box"\nmodel = "gamma"\n{tables}')
        with opened(tmp_path, shop) as terminal:
            terminal.sees("box/gamma")
            terminal.type("Hello")
            terminal.type(ENTER)
            terminal.sees("box does not serve gamma (404). /model to choose another.")
            terminal.type("/doctor")
            terminal.type(ENTER)
            terminal.sees("FAIL  answer", "-> /model")
            terminal.type("/model gone m")
            terminal.type(ENTER)
            terminal.sees("gone/m")
            terminal.type("Hello again")
            terminal.type(ENTER)
            terminal.sees("gone does not answer: cannot connect to", "/connect changes the address")
        done = codewhale_program(tmp_path, "exec", "-w", str(shop), "--provider", "box", "--model", "gamma", "Hello")
        assert "box does not serve gamma (404). Choose with --model M" in done.stderr
        done = codewhale_program(tmp_path, "exec", "-w", str(shop), "/login box")
        assert "codewhale login box" in done.stdout + done.stderr and done.returncode == 2
