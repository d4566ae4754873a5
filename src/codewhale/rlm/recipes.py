"""What a sub-query's text is made of, and that text built again: a prompt and a part of a source, by their hashes."""

from collections.abc import Callable
from typing import Any

SLOT = "{slice}"
_DIGITS = 32  # of a sha256: enough to find what it names


def query_text(prompt: str, part: str) -> str:
    """A prompt with its part of the source: where the prompt says `{slice}`, else below it."""
    if not part:
        return prompt
    return prompt.replace(SLOT, part) if SLOT in prompt else f"{prompt}\n\n{part}"


def recipe(prompt_sha: str, source_sha: str, span: tuple[int, int]) -> dict[str, Any]:
    """What the log keeps of a sub-query over bytes `span` of a source; without a source the prompt is all."""
    made: dict[str, Any] = {"prompt": prompt_sha[:_DIGITS]}
    return made | ({"source": source_sha[:_DIGITS], "span": list(span)} if source_sha else {})


def text_of(made: dict[str, Any], artifact: Callable[[str], bytes], source: Callable[[str, int, int], bytes]) -> str:
    """The text that was sent, built again. `artifact` gives what is kept under a hash that begins so, `source` bytes of
    such a source. Raises KeyError where either is not there any more."""
    prompt = artifact(made["prompt"]).decode("utf-8", "replace")
    if "source" not in made:
        return prompt
    start, end = made["span"]
    return query_text(prompt, source(made["source"], start, end).decode("utf-8", "replace"))
