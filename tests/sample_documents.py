"""Small binary documents, made byte by byte: PDF, zip files of XML, compound files (OLE) and Flash."""

import lzma
import struct
import zipfile
import zlib
from io import BytesIO

FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD  # marks of the compound file's table
SECTOR = 512
SMALL, SMALL_SECTOR = 4096, 64  # shorter streams lie together in one stream, in sectors of this size


def make_pdf(
    *pages: bytes, annotations: tuple[bytes, ...] = (), title: bytes = b"", extra: bytes = b"", catalog: bytes = b""
) -> bytes:
    """A page for each line of text; all annotations (the dictionary of their action) on the first."""
    count = len(pages)
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(count))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R " + catalog + b" >>",
        b"<< /Type /Pages /Kids [" + kids + b"] /Count %d >>" % count,
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    links = b" ".join(b"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A " + action + b" >>" for action in annotations)
    for number, text in enumerate(pages):
        drawn = b"BT /F1 8 Tf 10 50 Td (" + text + b") Tj ET"
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 2000 100] /Contents %d 0 R /Annots [" % (5 + 2 * number)
            + (links if number == 0 else b"")
            + b"] /Resources << /Font << /F1 3 0 R >> >> >>",
            b"<< /Length %d >>\nstream\n" % len(drawn) + drawn + b"\nendstream",
        ]
    objects.append(b"<< /Title (" + title + b") >>")
    made, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return (
        made
        + b"xref\n0 %d\n0000000000 65535 f \n" % size
        + table
        + (
            b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R %s >>\nstartxref\n%d\n%%%%EOF\n"
            % (size, len(objects), extra, len(made))
        )
    )


def uri(text: bytes) -> bytes:
    return b"<< /S /URI /URI (" + text + b") >>"


def make_zip(parts: dict[str, str | bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w", packing) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return made.getvalue()


def relationships(*targets: str, mode: str = "External", kind: str = "hyperlink") -> str:
    base = "http://schemas.openxmlformats.org/"
    inner = "".join(
        (
            f'<Relationship Id="r{number}" '
            f'Type="{base}officeDocument/2006/relationships/{kind}" Target="{target}" TargetMode="{mode}"/>'
        )
        for number, target in enumerate(targets)
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><Relationships '
        f'xmlns="{base}package/2006/relationships">{inner}</Relationships>'
    )


def make_docx(*targets: str, title: str = "A title", body: str = "") -> bytes:
    return make_zip(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f'<w:document xmlns:w="w"><w:body>{body}</w:body></w:document>',
            "word/_rels/document.xml.rels": relationships(*targets),
            "docProps/core.xml": (
                f'<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title>{title}</dc:title></cp:coreProperties>'
            ),
        }
    )


def make_compound(streams: dict[str, bytes], *, backwards: bool = False) -> bytes:
    """A compound file.

    Sector 0 is the table, sector 1 the directory (of three streams at most); backwards: as if fragmented.
    """
    table, sectors = [FAT, END], []
    small_table, small = [], b""

    def store(content: bytes) -> int:
        """The first sector of the content."""
        parts = [content[start : start + SECTOR].ljust(SECTOR, b"\0") for start in range(0, len(content), SECTOR)]
        places = list(range(len(table), len(table) + len(parts)))
        chain = places[::-1] if backwards else places
        following = dict(zip(chain, [*chain[1:], END]))
        table.extend(following[place] for place in places)
        sectors.extend(parts[chain.index(place)] for place in places)
        return chain[0] if chain else END

    entries = []
    for number, (name, content) in enumerate(streams.items(), 1):
        if len(content) >= SMALL:
            start = store(content)
        else:
            start, count = len(small_table), -(-len(content) // SMALL_SECTOR)
            small_table += [*range(start + 1, start + count), END][-count:]
            small += content.ljust(count * SMALL_SECTOR, b"\0")
        entries.append(
            directory_entry(name, 2, start, len(content), right=number + 1 if number < len(streams) else FREE)
        )
    root = directory_entry("Root Entry", 5, store(small), len(small), child=1 if streams else FREE)
    first_of_small_table = store(struct.pack(f"<{len(small_table)}I", *small_table))
    directory = b"".join([root, *entries]).ljust(SECTOR, b"\0")
    assert len(table) <= SECTOR // 4 and len(directory) == SECTOR
    header = struct.pack(
        "<8s16sHHHHH6sIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        bytes(16),
        0x3E,
        3,
        0xFFFE,
        9,
        6,
        bytes(6),
        0,
        1,
        1,
        0,
        SMALL,
        first_of_small_table,
        1 if small_table else 0,
        END,
        0,
    ) + struct.pack("<109I", 0, *[FREE] * 108)
    return (
        header
        + struct.pack(f"<{SECTOR // 4}I", *table, *[FREE] * (SECTOR // 4 - len(table)))
        + directory
        + b"".join(sectors)
    )


def directory_entry(name: str, kind: int, start: int, size: int, child: int = FREE, right: int = FREE) -> bytes:
    coded = (name + "\0").encode("utf-16-le")
    return struct.pack(
        "<64sHBBIII16sIQQIII", coded, len(coded), kind, 1, FREE, right, child, bytes(16), 0, 0, 0, start, size, 0
    )


def summary(title: bytes, codepage: int = 1252) -> bytes:
    """The stream of properties that holds a title."""
    values = struct.pack("<IHH", 2, codepage, 0), struct.pack("<II", 30, len(title) + 1) + title + b"\0"
    heads = struct.pack("<IIII", 1, 24, 2, 24 + len(values[0]))
    section = struct.pack("<II", 24 + len(values[0]) + len(values[1]), 2) + heads + b"".join(values)
    return struct.pack("<HHI16sI16sI", 0xFFFE, 0, 0, bytes(16), 1, bytes(16), 48) + section


def make_swf(*tags: tuple[int, bytes], packing: bytes = b"FWS") -> bytes:
    body = b"\x08\x00\x00\x18\x01\x00" + b"".join(swf_tag(code, content) for code, content in (*tags, (0, b"")))
    size = struct.pack("<I", len(body) + 8)
    if packing == b"CWS":
        return packing + b"\x0a" + size + zlib.compress(body)
    if packing == b"ZWS":
        packed = lzma.compress(body, lzma.FORMAT_ALONE)
        return packing + b"\x0d" + size + struct.pack("<I", len(packed) - 13) + packed[:5] + packed[13:]
    return packing + b"\x0a" + size + body


def swf_tag(code: int, content: bytes) -> bytes:
    if len(content) < 63:
        return struct.pack("<H", code << 6 | len(content)) + content
    return struct.pack("<HI", code << 6 | 63, len(content)) + content


def get_url(url: bytes, window: bytes = b"_blank") -> bytes:
    return b"\x83" + struct.pack("<H", len(url) + len(window) + 2) + url + b"\0" + window + b"\0"


def constant_pool(*texts: bytes) -> bytes:
    content = struct.pack("<H", len(texts)) + b"".join(text + b"\0" for text in texts)
    return b"\x88" + struct.pack("<H", len(content)) + content
