"""Run as a program: the results of a page of a search on standard input. Arguments: CSS selectors of a result, of its
link, of its text, of "there is nothing", and of a question whether a person is there. Writes one JSON object: `rows` of
title, address and text, `empty`, `challenged`."""

import json
import sys

_MOST = 30


def main() -> int:
    from selectolax.lexbor import LexborHTMLParser

    row, link, text, nothing, challenge = sys.argv[1:6]
    page = LexborHTMLParser(sys.stdin.buffer.read(4 << 20).decode("utf-8", "replace"))
    rows = []
    for one in page.css(row)[:_MOST]:
        title, said = one.css_first(link), one.css_first(text)
        if title is not None and title.attributes.get("href"):
            rows.append([title.text() or "", title.attributes["href"], (said.text() or "") if said is not None else ""])
    found = {"rows": rows, "empty": bool(page.css(nothing)), "challenged": bool(page.css(challenge))}
    sys.stdout.write(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
