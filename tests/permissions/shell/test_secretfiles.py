"""Which names look like secrets."""

import pytest

from codewhale.permissions.shell.paths import secret_file


@pytest.mark.parametrize(
    "path",
    """.env .env.local a/.env.production deploy.env .ENV .envrc id_rsa id_ed25519 a/ID_RSA ID_rsa.old certs/server.key
    server.pem store.p12 keys.kdbx .netrc _netrc .npmrc .pypirc .git-credentials .htpasswd terraform.tfstate
    prod.tfvars credentials credentials.json secrets.yaml secrets.yml secret.json service-account.json
    service_account_prod.json client_secret_123.json kubeconfig .kube/config /home/x/.kube/config .docker/config.json
    .ssh/config .ssh/known_hosts .aws/config /root/.gnupg/x .config/gh/hosts.yml .cargo/credentials.toml
    .m2/settings.xml ~/.codewhale/secrets/keys.json /proc/self/environ /proc/1/environ master.key config/master.key
    .vault-token /etc/shadow passwords.txt C:\\\\x\\\\.env .pgpass""".split(),
)
def test_these_do(path: str) -> None:
    assert secret_file(path)


@pytest.mark.parametrize(
    "path",
    """.env.example .env.sample .env.template .env.dist a/.env.example env.py environment.ts src/keys.py key.go
    id_rsa.pub
    tokens.css tokenizer.py secrets.py secret_manager.go password.py src/credentials.ts docs/secrets.md monkey.txt
    config.json package.json docker/config.json .github/workflows/x.yml README.md kube/config.txt keyboard.c a.keys.ts
    credentials.example.json secrets.sample.yaml . / main.tf cert.crt .envision.txt proc/stat environ""".split(),
)
def test_these_do_not(path: str) -> None:
    assert secret_file(path) == ""


def test_the_reason_names_the_file() -> None:
    assert secret_file("a/b/.env") == ".env usually contains passwords or keys"
    assert secret_file("/home/x/.ssh/config") == ".ssh/ keeps credentials"
