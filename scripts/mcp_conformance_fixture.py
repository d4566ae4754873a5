"""The server that the public conformance suite of the Model Context Protocol wants to meet: its tools, resources and
prompts, behind the door and listener of `codewhale mcp serve --http`. Prints its address."""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import sys
import warnings
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from codewhale.mcpserver import http

Context = ServerRequestContext[Any, Any]
Called = types.CallToolResult | types.InputRequiredResult
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = base64.b64encode(
    b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\x02\0\0\0\0\0"
).decode()
SECRET = secrets.token_bytes(32)
PAUSE = 0.05
OPTIONS = ["option1", "option2", "option3"]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {
        "type": "string",
        "oneOf": [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second"), 1)],
    },
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {
        "type": "array",
        "items": {"anyOf": [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]},
    },
}
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
DRAFT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
ASKED: dict[str, dict[str, Any]] = {
    "elicitation": {"user_name": ("What is your name?", "name", "string")},
    "request_state": {"confirm": ("Please confirm", "ok", "boolean")},
    "tampered_state": {"confirm": ("Please confirm", "ok", "boolean")},
    "capabilities": {"user_name": ("What is your name?", "name", "string")},
}
SIMPLE: dict[str, list[types.ContentBlock]] = {
    "test_simple_text": [types.TextContent(text="This is a simple text response for testing.")],
    "test_image_content": [types.ImageContent(data=PNG, mime_type="image/png")],
    "test_audio_content": [types.AudioContent(data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [
        types.EmbeddedResource(
            resource=types.TextResourceContents(
                uri="test://embedded-resource", mime_type="text/plain", text="This is an embedded resource content."
            )
        )
    ],
    "test_multiple_content_types": [
        types.TextContent(text="Multiple content types test:"),
        types.ImageContent(data=PNG, mime_type="image/png"),
        types.EmbeddedResource(
            resource=types.TextResourceContents(
                uri="test://mixed-content-resource", mime_type="application/json", text='{"test":"data","value":123}'
            )
        ),
    ],
    "json_schema_2020_12_tool": [types.TextContent(text="The schema was kept.")],
}
INPUTS = ("elicitation", "sampling", "list_roots", "request_state", "multiple_inputs", "multi_round", "tampered_state",
          "capabilities")  # fmt: skip
TOOLS = (
    *SIMPLE, "test_error_handling", "test_tool_with_logging", "test_tool_with_progress", "test_sampling",
    "test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums",
    "test_reconnection", "test_missing_capability", "test_streaming_elicitation", "test_logging_tool",
    *(f"test_input_required_result_{name}" for name in INPUTS),
)  # fmt: skip
TEXTS = {"test_sampling": "prompt", "test_elicitation": "message"}


def form(message: str, key: str, kind: str) -> types.ElicitRequest:
    schema = {"type": "object", "properties": {key: {"type": kind}}, "required": [key]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(text: str, most: int) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=most))


def sealed(text: str) -> str:
    return f"{text}.{hmac.new(SECRET, text.encode(), hashlib.sha256).hexdigest()}"


def opened(state: str | None) -> str:
    text = (state or "").rpartition(".")[0]
    if not hmac.compare_digest(sealed(text).encode(), (state or "").encode()):
        raise MCPError(types.INVALID_PARAMS, "The request state is not one of this server.")
    return text


def said(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


async def list_tools(ctx: Context, params: Any) -> types.ListToolsResult:
    tools = []
    for name in TOOLS:
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        if name in TEXTS:
            schema = {"type": "object", "properties": {TEXTS[name]: {"type": "string"}}, "required": [TEXTS[name]]}
        if name == "json_schema_2020_12_tool":
            schema = DRAFT
        tools.append(types.Tool(name=name, description=f"{name} of the suite", input_schema=schema))
    return types.ListToolsResult(tools=tools)


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> Called:
    name, arguments = params.name, params.arguments or {}
    if name in SIMPLE:
        return types.CallToolResult(content=SIMPLE[name])
    if name.startswith("test_input_required_result_"):
        return with_input(ctx, name.removeprefix("test_input_required_result_"), params)
    match name:
        case "test_error_handling":
            text = types.TextContent(text="This tool intentionally returns an error for testing")
            return types.CallToolResult(content=[text], is_error=True)
        case "test_tool_with_logging" | "test_logging_tool":
            for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
                await ctx.session.send_log_message("info", line, related_request_id=ctx.request_id)
                await asyncio.sleep(PAUSE)
            return said("It has logged.")
        case "test_tool_with_progress":
            for done in (0, 50, 100):
                await ctx.session.report_progress(done, 100)
                await asyncio.sleep(PAUSE)
            return said("It has told how far it was.")
        case "test_reconnection":
            if ctx.close_sse_stream is not None:
                await ctx.close_sse_stream()
            await asyncio.sleep(PAUSE)
            return said("It went on.")
        case "test_sampling" | "test_missing_capability":
            return await sample(ctx, str(arguments.get("prompt", "")))
        case "test_streaming_elicitation":
            return types.InputRequiredResult(input_requests=requests("elicitation"))
        case "test_elicitation":
            fields = {"username": {"type": "string", "description": "User's response"},
                      "email": {"type": "string", "description": "User's email address"}}  # fmt: skip
            return await elicit(ctx, str(arguments.get("message", "Who?")), fields, list(fields), "User response: ")
        case "test_elicitation_sep1034_defaults":
            return await elicit(ctx, "Please fill this in", DEFAULTS, [], "Elicitation completed: ")
        case "test_elicitation_sep1330_enums":
            return await elicit(ctx, "Please choose", ENUMS, [], "Elicitation completed: ")
    raise MCPError(types.INVALID_PARAMS, f"there is no tool {name}")


async def sample(ctx: Context, prompt: str) -> types.CallToolResult:
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        needed = {"requiredCapabilities": {"sampling": {}}}
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "The client cannot sample.", needed)
        raise MCPError(types.INVALID_PARAMS, "The client cannot sample.", needed)
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    answer = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
    return said(f"LLM response: {getattr(answer.content, 'text', '')}")


async def elicit(
    ctx: Context, message: str, fields: dict[str, Any], required: list[str], head: str
) -> types.CallToolResult:
    schema = {"type": "object", "properties": fields, "required": required}
    answer = await ctx.session.elicit_form(message, schema, ctx.request_id)
    return said(f"{head}action={answer.action}, content={json.dumps(answer.content or {})}")


def with_input(ctx: Context, name: str, params: types.CallToolRequestParams) -> Called:
    """The tools that ask in their result."""
    came = params.input_responses or {}
    state = "" if params.request_state is None else opened(params.request_state)
    if name == "multi_round":
        return rounds(state, came)
    wanted = requests(name)
    capabilities = ctx.session.client_capabilities
    if name == "capabilities" and (capabilities is None or capabilities.elicitation is None):
        wanted = {"capital_question": sampling("What is the capital of France?", 100)}
    if any(key not in came or not fits(came[key]) for key in wanted):
        needs_state = name in ("request_state", "tampered_state", "multiple_inputs")
        return types.InputRequiredResult(input_requests=wanted, request_state=sealed("asked") if needs_state else None)
    if name in ("request_state", "tampered_state") and state != "asked":
        raise MCPError(types.INVALID_PARAMS, "The request state is missing.")
    if name == "request_state":
        return said("state-ok")
    texts = [json.dumps(one.model_dump(mode="json", by_alias=True, exclude_none=True)) for one in came.values()]
    content = getattr(came.get("user_name"), "content", None) or {}
    return said(f"Hello, {content['name']}!" if content.get("name") and name == "elicitation" else "\n".join(texts))


def fits(response: Any) -> bool:
    return not isinstance(response, types.ElicitResult) or response.action != "accept" or bool(response.content)


def requests(name: str) -> dict[str, Any]:
    """What a tool asks for."""
    match name:
        case "sampling":
            return {"capital_question": sampling("What is the capital of France?", 100)}
        case "list_roots":
            return {"client_roots": types.ListRootsRequest()}
        case "multiple_inputs":
            return {
                "user_name": form("What is your name?", "name", "string"),
                "greeting": sampling("Generate a greeting", 50),
                "client_roots": types.ListRootsRequest(),
            }
    return {key: form(*row) for key, row in ASKED[name].items()}


def rounds(state: str, came: Any) -> Called:
    if state == "round 2" and "step2" in came:
        return said("Both steps are done.")
    if state in ("round 1", "round 2") and ("step1" in came or state == "round 2"):
        asked = {"step2": form("Step 2: What is your favorite color?", "color", "string")}
        return types.InputRequiredResult(input_requests=asked, request_state=sealed("round 2"))
    asked = {"step1": form("Step 1: What is your name?", "name", "string")}
    return types.InputRequiredResult(input_requests=asked, request_state=sealed("round 1"))


RESOURCES = {
    "test://static-text": ("text/plain", "A text"),
    "test://static-binary": ("image/png", "A picture"),
    "test://watched-resource": ("text/plain", "One that can be watched"),
}


async def list_resources(ctx: Context, params: Any) -> types.ListResourcesResult:
    rows = [
        types.Resource(uri=uri, name=uri.rpartition("/")[2], description=text, mime_type=mime)
        for uri, (mime, text) in RESOURCES.items()
    ]
    return types.ListResourcesResult(resources=rows)


async def list_templates(ctx: Context, params: Any) -> types.ListResourceTemplatesResult:
    row = types.ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="template",
        description="Data by id",
        mime_type="application/json",
    )
    return types.ListResourceTemplatesResult(resource_templates=[row])


async def read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    content: types.TextResourceContents | types.BlobResourceContents
    if uri == "test://static-binary":
        content = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri.startswith("test://template/") and uri.endswith("/data"):
        name = uri.split("/")[3]
        data = {"id": name, "templateTest": True, "data": f"Data for ID: {name}"}
        content = types.TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(data))
    elif uri in RESOURCES:
        text = "This is the content of the static text resource."
        content = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
    else:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return types.ReadResourceResult(contents=[content])


async def empty(ctx: Context, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


async def list_prompts(ctx: Context, params: Any) -> types.ListPromptsResult:
    rows = [
        types.Prompt(
            name=name,
            description=f"{name} of the suite",
            arguments=[types.PromptArgument(name=one, description=one, required=True) for one in arguments],
        )
        for name, arguments in PROMPTS.items()
    ]
    return types.ListPromptsResult(prompts=rows)


async def get_prompt(
    ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    arguments = params.arguments or {}
    blocks: list[types.ContentBlock]
    match params.name:
        case "test_simple_prompt":
            blocks = [types.TextContent(text="This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            text = f"Prompt with arguments: arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'"
            blocks = [types.TextContent(text=text)]
        case "test_prompt_with_embedded_resource":
            resource = types.TextResourceContents(
                uri=arguments["resourceUri"], mime_type="text/plain", text="Embedded resource content for testing."
            )
            after = types.TextContent(text="Please process the embedded resource above.")
            blocks = [types.EmbeddedResource(resource=resource), after]
        case "test_prompt_with_image":
            after = types.TextContent(text="Please analyze the image above.")
            blocks = [types.ImageContent(data=PNG, mime_type="image/png"), after]
        case "test_input_required_result_prompt":
            if "user_context" not in (params.input_responses or {}):
                asked = form("What context should the prompt use?", "context", "string")
                return types.InputRequiredResult(input_requests={"user_context": asked})
            blocks = [types.TextContent(text="The context has come.")]
        case _:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=block) for block in blocks])


async def complete(ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [one for one in ("paris", "park", "party") if one.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


async def main() -> None:
    """Serve until killed."""
    warnings.simplefilter("ignore")  # the older revision's logging and roots are deprecated, and asked for
    server: Server[Any] = Server(
        "codewhale-conformance",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=empty,
        on_unsubscribe_resource=empty,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=empty,
    )
    listening = http.listening("127.0.0.1", 0)
    port = listening.getsockname()[1]
    print(f"http://127.0.0.1:{port}{http.PATH}", flush=True)
    await http.listener(server, http.door("", "127.0.0.1", port)).serve(sockets=[listening])


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
