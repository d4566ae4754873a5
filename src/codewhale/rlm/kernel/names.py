"""The names that a model's code finds: the source, ways to look at it, questions to a model, and the answer."""

import json
import math
import re
import sys

from codewhale.rlm.kernel.source import PLAIN, BigSource, PlainSource, PlainSpan, Span, as_bytes, decoded

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

BATCH = 16
WHOLE = 128  # what one message of sub_query_all asks; as many run at once as in a batch
_SNIPPET = 80
_MODES = ("independent", "parallel_safe", "map_reduce")


class ModelText(str):
    """What a model answered; `failed` where it did not, and then it says why in brackets."""

    error = ""

    @property
    def failed(self) -> "Any":
        return bool(self.error)


class QueryError:
    """A slot that has no answer: its index, the kind of failure, and the text that stands in its place."""

    def __init__(self, index: int, kind: str, message: "Any") -> None:
        self.index, self.kind, self.message = index, kind, message

    def __repr__(self) -> str:
        return f"QueryError(index={self.index}, kind={self.kind!r}, message={self.message!r})"


class Answers(list):  # type: ignore[type-arg]
    """The answers of a batch in the order of its slices; `errors` are the slots that failed."""

    @property
    def errors(self) -> "Any":
        return tuple(QueryError(n, one.error, str(one)) for n, one in enumerate(self) if getattr(one, "error", ""))


class KernelNames:
    """Bound to one source and one channel; `finals` are what the round at hand gave finalize."""

    def __init__(self, source: "Any", channel: "Any") -> None:
        self.source = source
        self.finals: list[Any] = []
        self._channel = channel
        self._plain = source.bytes <= PLAIN
        self.bound = PlainSource(source) if self._plain else BigSource(source)
        self.namespace: dict[str, Any] = {}

    def names(self) -> "Any":
        bound = self.bound
        names = {"SOURCE": bound, "_context": bound, "_ctx": bound, "content": bound, "context_meta": self.context_meta}
        for name in (
            "peek search chunk chunk_context chunk_coverage repl_get repl_set evaluate_progress finalize sub_query "
            "sub_query_batch sub_query_map sub_query_sequence sub_query_all sub_rlm SHOW_VARS FINAL FINAL_VAR"
        ).split():
            names[name] = getattr(self, name)
        names |= {"llm_query": self.sub_query, "llm_query_batched": self._llm_batch}
        return names | {"rlm_query": self.sub_rlm, "rlm_query_batched": self._rlm_batch}

    # ---------------------------------------------------------------- looking

    def context_meta(self) -> "Any":
        source = self.source
        kind = "str" if self._plain else "large source"
        return {"bytes": source.bytes, "chars": source.chars, "lines": source.line_count, "type": kind}

    def peek(self, start: int = 0, end: "int | None" = None, unit: str = "chars") -> "Any":
        """The text from `start` to `end` (2,000 further on by default), in characters or lines from 0."""
        if unit not in ("chars", "lines"):
            raise ValueError(f"peek: unit is {unit!r}; send 'chars' or 'lines'")
        size = self.source.chars if unit == "chars" else self.source.line_count
        end = start + (2000 if unit == "chars" else 40) if end is None else end
        start, end, _ = slice(start, end).indices(size)
        place = self.source.byte_at if unit == "chars" else self.source.line_start
        return self.source.text(place(start), place(max(start, end)))

    def search(self, pattern: "Any", max_hits: int = 100, flags: int = 0) -> "Any":
        """Places that a regular expression matches: dicts of index, start, end (characters), line, match, snippet."""
        source = self.source
        hits: list[Any] = []
        if self._plain:
            found = re.compile(pattern, flags).finditer(self.bound)
            rows = ((one.start(), one.end(), one[0]) for one in found)
        else:
            found = as_bytes(pattern, flags).finditer(source.map)
            rows = ((source.char_at(one.start()), source.char_at(one.end()), decoded(one[0])) for one in found)
        for start, end, match in rows:
            if len(hits) >= max_hits:
                break
            snippet = self.peek(max(0, start - _SNIPPET), end + _SNIPPET) if end - start < 2000 else match[:2000]
            hits.append({"index": len(hits), "start": start, "end": end, "match": match, "snippet": snippet})
        return hits

    def chunk(self, max_chars: int = 20000, overlap: int = 0) -> "Any":
        """The source in parts of at most `max_chars`, which end at the end of a line where they can."""
        size, overlap = int(max_chars), int(overlap)
        if size < 1 or not 0 <= overlap < size:
            raise ValueError(f"chunk: max_chars is {max_chars}, overlap {overlap}; send 1 <= max_chars > overlap >= 0")
        made = PlainSpan if self._plain else Span
        return [made(self.source, start, end, n) for n, (start, end) in enumerate(self.source.spans(size, overlap))]

    def chunk_context(self, max_chars: int = 20000, overlap: int = 0) -> "Any":
        return self.chunk(max_chars, overlap)

    def chunk_coverage(self, spans: "Any") -> "Any":
        """How much of the source these spans hold, and what they leave out, in bytes."""
        at, seen, gaps = 0, 0, []
        for start, end in sorted((one.start, one.end) for one in spans):
            if start > at:
                gaps.append((at, start))
            seen += max(0, end - max(at, start))
            at = max(at, end)
        if at < self.source.bytes:
            gaps.append((at, self.source.bytes))
        size = self.source.bytes
        return {"covered": seen / size if size else 1.0, "bytes": seen, "of": size, "gaps": gaps[:100]}

    def repl_get(self, name: str, default: "Any" = None) -> "Any":
        return self.namespace.get(name, default)

    def repl_set(self, name: str, value: "Any") -> "Any":
        self.namespace[name] = value
        return value

    def SHOW_VARS(self) -> "Any":
        own = {name: value for name, value in self.namespace.items() if not name.startswith("_")}
        known = self.names()
        shown = {name: type(value).__name__ for name, value in own.items() if name not in known}
        sys.stdout.write(("\n".join(f"{name}: {kind}" for name, kind in shown.items()) or "no variables yet") + "\n")
        return shown

    def evaluate_progress(self) -> "Any":
        return {**self.context_meta(), "finals": len(self.finals), "variables": len(self.SHOW_VARS())}

    # ---------------------------------------------------------------- asking

    def sub_query(self, prompt: "Any", slice: "Any" = None, timeout_secs: "Any" = None, **options: "Any") -> "Any":
        """Ask a model one question, about a slice where there is one. rlm_configure sets how long it may take."""
        return self._ask("query", [prompt], [slice], options)[0]

    def sub_query_batch(
        self,
        prompt: "Any",
        slices: "Any",
        timeout_secs: "Any" = None,
        dependency_mode: "Any" = "independent",
        safety_note: "Any" = None,
        **options: "Any",
    ) -> "Any":
        """Ask the same about at most 16 slices at once."""
        slices = _listed(slices, "sub_query_batch", "slices")
        self._check(slices, "sub_query_batch", "sub_query_all(prompt, slices)", dependency_mode)
        return self._ask("query", prompt, slices, options)

    def sub_query_map(
        self,
        prompts: "Any",
        slices: "Any" = None,
        timeout_secs: "Any" = None,
        dependency_mode: "Any" = "independent",
        **options: "Any",
    ) -> "Any":
        """Ask each of at most 16 prompts, about the slice at its place where there are slices."""
        prompts = _listed(prompts, "sub_query_map", "prompts")
        slices = [None] * len(prompts) if slices is None else _listed(slices, "sub_query_map", "slices")
        if len(slices) != len(prompts):
            raise ValueError(f"sub_query_map: {len(prompts)} prompts and {len(slices)} slices; send as many of each")
        self._check(slices, "sub_query_map", "batches of 16", dependency_mode)
        return self._ask("query", prompts, slices, options)

    def sub_query_all(
        self, prompt: "Any", slices: "Any" = None, max_chars: int = 20000, timeout_secs: "Any" = None, **options: "Any"
    ) -> "Any":
        """Ask the same about any number of slices, 16 at a time; without slices about the whole source in parts."""
        slices = self.chunk(max_chars) if slices is None else _listed(slices, "sub_query_all", "slices")
        answers = Answers()
        for at in range(0, len(slices), WHOLE):
            answers += self._ask("query", prompt, slices[at : at + WHOLE], options, whole=True)
        return answers

    def sub_query_sequence(
        self, prompt: "Any", slices: "Any", carry_prompt: "Any" = None, timeout_secs: "Any" = None, **options: "Any"
    ) -> "Any":
        """Ask about slices one after the other, each with the answer before it."""
        answers, carried = Answers(), ""
        for part in _listed(slices, "sub_query_sequence", "slices"):
            before = f"{carry_prompt or 'The answer so far:'}\n{carried}\n\n" if answers else ""
            answers.append(self._ask("query", [f"{before}{prompt}"], [part], options)[0])
            carried = answers[-1]
        return answers

    def sub_rlm(self, prompt: "Any", source: "Any" = None, timeout_secs: "Any" = None, **options: "Any") -> "Any":
        """Have a model answer with a Python session of its own, over `source` or all of this one."""
        return self._ask("rlm", [prompt], [source], options)[0]

    def _llm_batch(self, prompts: "Any", *more: "Any", **options: "Any") -> "Any":
        return self._each("query", prompts, options)

    def _rlm_batch(self, prompts: "Any", *more: "Any", **options: "Any") -> "Any":
        return self._each("rlm", prompts, options)

    def _each(self, kind: str, prompts: "Any", options: "Any") -> "Any":
        prompts, answers = _listed(prompts, "batched", "prompts"), Answers()
        for at in range(0, len(prompts), BATCH):
            some = prompts[at : at + BATCH]
            answers += self._ask(kind, some, [None] * len(some), options)
        return answers

    def _check(self, slices: "Any", name: str, instead: str, mode: str) -> None:
        if mode not in _MODES:
            raise ValueError(f"{name}: dependency_mode is {mode!r}; leave it out or send one of {', '.join(_MODES)}")
        if len(slices) > BATCH:
            raise ValueError(f"{name}: at most {BATCH} slices a call, got {len(slices)}; use {instead}")

    def _ask(self, kind: str, prompts: "Any", slices: "Any", options: "Any", whole: bool = False) -> "Any":
        if not slices:
            return Answers()
        if isinstance(prompts, list) and len(prompts) != len(slices):
            raise ValueError(f"{len(prompts)} prompts and {len(slices)} slices; send one prompt, or as many of each")
        frame = {"kind": kind, "spans": [self._span(one) for one in slices], "options": {}, "whole": whole}
        if isinstance(prompts, list):
            frame["prompts"] = [_said(prompt) for prompt in prompts]
        else:
            frame["template"] = _said(prompts)
        answers = Answers()
        for text, error in self._channel.ask(frame, len(slices)):
            answer = ModelText(text)
            answer.error = error
            answers.append(answer)
        return answers

    def _span(self, part: "Any") -> "Any":
        """What is sent of a slice: where it stands in the source, or a text of the model's own."""
        if part is None or part is self.bound:
            return None if part is None else [0, self.source.bytes]
        if isinstance(part, (Span, PlainSpan)):
            return [part.start, part.end]
        if isinstance(part, dict) and {"start", "end"} <= part.keys() and "match" not in part:
            return self._within(part["start"], part["end"])
        if isinstance(part, bytes):
            return decoded(part)
        return _said(part)

    def _within(self, start: "Any", end: "Any") -> "Any":
        size = self.source.bytes
        if type(start) is not int or type(end) is not int or not 0 <= start <= end <= size:
            raise ValueError(f"a slice from {start!r} to {end!r}; send bytes, 0 <= start <= end <= {size}")
        return [start, end]

    # ---------------------------------------------------------------- the answer

    def finalize(self, value: "Any", confidence: "Any" = None) -> None:
        """Give the answer of this session: any JSON value."""
        if confidence is not None and not _finite(confidence):
            raise ValueError(f"finalize: confidence is {confidence!r}; send a number from 0 to 1")
        kept, coerced = value, False
        try:
            json.dumps(value, allow_nan=False)
            kept = json.loads(json.dumps(value))
        except ValueError as error:
            if _endless(value):
                raise ValueError("finalize: NaN and infinity are no JSON; send None or a text for them") from error
            kept, coerced = str(value), True
        except (TypeError, RecursionError):
            kept, coerced = str(value), True
        self.finals.append({"value": kept, "coerced": coerced, "confidence": confidence})

    def FINAL(self, value: "Any", confidence: "Any" = None) -> None:
        self.finalize(value, confidence)

    def FINAL_VAR(self, name: str, confidence: "Any" = None) -> None:
        if not isinstance(name, str) or name not in self.namespace:
            raise NameError(f"FINAL_VAR: there is no variable {name!r}; send the name of one as a string")
        self.finalize(self.namespace[name], confidence)


def _listed(values: "Any", name: str, what: "Any") -> "Any":
    if isinstance(values, (str, bytes, Span)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name}: {what} is one {type(values).__name__}; send a list, such as chunk(20000)")
    return list(values)


def _said(value: "Any") -> "Any":
    return value if type(value) is str else str(value)


def _finite(value: "Any") -> "Any":
    """Whether a value is a number that a frame can hold as one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _endless(value: "Any") -> "Any":
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(_endless, value.values()))
    return isinstance(value, (list, tuple)) and any(map(_endless, value))
