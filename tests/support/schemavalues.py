"""Values made from schemas."""

from typing import Any


def sample(schema: dict[str, Any]) -> Any:
    """The least value that fits a schema: its required fields, the first choice, the smallest number."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: sample(properties.get(name, {"type": "string"})) for name in schema.get("required", ())}
    if kind == "array":
        return [sample(schema.get("items", {"type": "string"})) for _ in range(schema.get("minItems", 0))]
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 0), min(0, schema.get("maximum", 0)))
    return {"boolean": False, "null": None}.get(str(kind), "x" * max(1, schema.get("minLength", 1)))
