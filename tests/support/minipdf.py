"""The smallest PDFs that hold text."""


def pdf(*texts: str) -> bytes:
    """A minimal PDF with one line of text a page."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>"]
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(texts)))
    objects.append(f"<</Type/Pages/Kids[{kids}]/Count {len(texts)}>>".encode())
    objects.append(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    for i, text in enumerate(texts):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode()
        fonts = "/Resources<</Font<</F1 3 0 R>>>>"
        page = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {5 + 2 * i} 0 R{fonts}>>"
        objects += [page.encode(), b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream)]
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    return out + head + table + b"trailer<</Size %d/Root 1 0 R>>startxref\n%d\n%%%%EOF" % (len(objects) + 1, len(out))
