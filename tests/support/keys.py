"""Made-up keys of the shapes that services give out, one each; put together here so that no scanner takes this file
for a leak."""

_HEX = "0123456789abcdef"
_MIX = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA"

KEYS = {
    "github": "gh" + "p_" + _MIX + "b1C2",
    "github fine": "github_" + "pat_" + "11ABCDEFG0" + _MIX + "_" + _MIX,
    "gitlab": "gl" + "pat-" + _MIX[:20],
    "openai": "s" + "k-proj-" + _MIX + "_" + _MIX,
    "anthropic": "s" + "k-ant-api03-" + _MIX + "-" + _MIX,
    "deepseek": "s" + "k-" + _HEX * 2,
    "openrouter": "s" + "k-or-v1-" + _HEX * 4,
    "groq": "gs" + "k_" + _MIX + _MIX[:20],
    "huggingface": "h" + "f_" + _MIX + "ab",
    "aws": "AK" + "IAQ3EGZRNZ5PL6ABCD",
    "google": "AI" + "za" + "SyD3" + _MIX[:31],
    "google login": "ya" + "29." + _MIX * 2,
    "slack": "xo" + "xb-123456789012-1234567890123-" + _MIX[:24],
    "stripe": "sk_" + "live_" + _MIX[:24],
    "stripe hook": "wh" + "sec_" + _MIX,
    "npm": "np" + "m_" + _MIX + "abcd",
    "pypi": "py" + "pi-AgEIcHlwaS5vcmc" + _MIX * 2,
    "sendgrid": "S" + "G." + _MIX[:22] + "." + _MIX + "abcdefghijk",
    "twilio": "S" + "K" + _HEX * 2,
    "mailgun": "ke" + "y-" + _HEX * 2,
    "digitalocean": "do" + "p_v1_" + _HEX * 4,
    "shopify": "sh" + "pat_" + _HEX * 2,
    "jwt": "ey" + "JhbGciOiJIUzI1NiJ9." + "ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0." + _MIX,
    "databricks": "da" + "pi" + "0123456789abcdef0123456789abcdef",
    "docker": "dckr_" + "pat_" + _MIX[:27],
    "vault": "hv" + "s." + _MIX * 2,
    "linear": "lin_" + "api_" + _MIX + "abcdefgh",
    "age": "AGE-SECRET-" + "KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2,
}
PEM = (
    "-----BEGIN RSA PRIVATE" + " KEY-----\n" + "\n".join(["MIIEpAIBAAKCAQEA" + _MIX + "+/Q="] * 12)
    + "\n-----END RSA PRIVATE" + " KEY-----"
)  # fmt: skip
