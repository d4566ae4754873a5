"""Files that look as if they held secrets, by their names alone: reading and writing them is asked for."""

import re

_ENV = re.compile(r"\.env(?:rc|\..+)?|.+\.env")
# Samples are meant to be read, and public halves to be public.
_HARMLESS = re.compile(r".*(?:[._-](?:example|sample|template|dist|defaults?|schema)|\.pub|\.md)(?:\.[a-z]+)?")
_NAMES = re.compile(
    r"id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:[._-].*)?|.*\.(?:pem|key|p12|pfx|pkcs12|p8|jks|keystore|kdbx?|ppk|ovpn|asc|gpg|age)"
    r"|\.netrc|_netrc|\.pgpass|\.my\.cnf|\.npmrc|\.yarnrc\.yml|\.pypirc|\.git-credentials|\.htpasswd|\.dockercfg|\.s3cfg"
    r"|\.boto|\.vault-token|\.terraformrc|credentials\.tfrc\.json|.*\.tfvars(?:\.json)?|.*\.tfstate(?:\.backup)?"
    r"|credentials?(?:\.(?:json|ya?ml|toml|ini|csv|db))?|secrets?(?:\.(?:json|ya?ml|toml|ini|env|txt|properties))?"
    r"|(?:service[-_]?account|client[-_]secret|application[-_]default[-_]credentials|.*[-_]credentials).*\.json"
    r"|kubeconfig|.*\.kubeconfig|master\.key|.*\.keytab|shadow|gshadow|passwords?(?:\.(?:txt|csv|json|ya?ml))?"
)
# Folders of which every file counts, and files that count in a certain folder alone.
_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".password-store", "gcloud", "keyrings"})
_PLACES = re.compile(
    r"(?:.*/)?(?:\.kube/config|\.docker/config\.json|\.cargo/credentials(?:\.toml)?|\.gem/credentials"
    r"|\.config/(?:gh|glab-cli|hub|rclone|op)(?:/.*)?|\.m2/settings(?:-security)?\.xml|\.gradle/gradle\.properties"
    r"|\.codewhale/(?:secrets/.*|trust\.json)|proc/[^/]+/(?:environ|mem|cmdline)"
    r"|(?:firefox|chrome|chromium)/.*(?:logins\.json|key4\.db|login data|cookies))"
)


def secret_file(path: str) -> str:
    """Why a path looks like that of a file with secrets, "" when it does not; `path` may be relative, quoted by nobody,
    of any case."""
    plain = path.replace("\\", "/").casefold().rstrip("/")
    name = plain.rpartition("/")[2]
    if _PLACES.fullmatch(plain):
        return f"{path} keeps credentials"
    if _HARMLESS.fullmatch(name):
        return ""
    if _ENV.fullmatch(name):
        return f"{name} usually holds passwords and keys"
    if _NAMES.fullmatch(name):
        return f"{name} is named like a file of keys or passwords"
    folder = next((part for part in plain.split("/")[:-1] if part in _FOLDERS), "")
    return f"{folder}/ keeps credentials" if folder else ""
