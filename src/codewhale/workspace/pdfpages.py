"""Run as a program: the text of a PDF on standard input, by pdfium. Arguments: first page, last page (0: to the end),
most characters. Writes {"total", "pages"}; ends with 3 where the library is not installed."""

import json
import sys

_MOST_PAGES = 5000


def main() -> int:
    try:
        import pypdfium2  # type: ignore[import-untyped]
    except ImportError:
        return 3
    first, last, limit = map(int, sys.argv[1:])
    document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
    total, size = len(document), 0
    pages: list[str] = []
    for number in range(first, min(last or total, total, first + _MOST_PAGES - 1) + 1):
        text = document[number - 1].get_textpage().get_text_range()
        pages.append(text[:limit])
        size += len(text)
        if size >= limit:
            break
    sys.stdout.write(json.dumps({"total": total, "pages": pages}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
