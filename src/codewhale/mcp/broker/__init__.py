"""The broker: a program that holds the SDK of the protocol and speaks with all servers, started by codewhale.mcp.link
and imported by nobody."""
