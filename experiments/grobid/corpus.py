"""Labelled files of GROBID's header and segmentation corpora: corpus.py CLONE OUT [--documents N].

CLONE is a clone of GROBID's repository, bare or not: files are read from its newest commit. A document is a file of
raw features, one line per token (header) or per line of text (segmentation), and a TEI file with the fields in the
text. Both programs read the files that are made: columns with the label last, a space between them, and an empty line
behind each document; and the template of the repository with u and b as first letters, so that both take it for
patterns of Wapiti. Labels are those of GROBID: I-<title> where a field begins, <title> within.

A fifth of the documents, chosen by chance with a fixed seed, is for tests. Documents whose raw lines cannot be found
in the text (more than 3 %), or have other numbers of columns, are left out.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
from collections.abc import Iterator
from html import unescape
from pathlib import Path

DATASET = "grobid-trainer/resources/dataset"
MOST_LOST = 0.03  # share of raw lines that are not found in the text of a document
AHEAD = 8  # lines of the text in which the beginning of a raw line is searched, and for tokens 40 characters

# Fields by element, and by the attribute `type` or `place` of the elements that have one.
HEADER = {
    "titlePart": "title", "docAuthor": "author", "affiliation": "affiliation", "address": "address", "email": "email",
    "meeting": "meeting", "editor": "editor", "date": "date", "keywords": "keyword", "keyword": "keyword",
    "idno": "pubnum", "reference": "reference", "ptr": "web", "div:abstract": "abstract", "note:reference": "reference",
    "note:submission": "submission", "note:copyright": "copyright", "note:funding": "funding", "note:group": "group",
    "note:doctype": "doctype", "note:docType": "doctype", "note:document_type": "doctype",
    "note:availability": "availability",
}  # fmt: skip
SEGMENTATION = {
    "front": "header", "body": "body", "titlePage": "cover", "listBibl": "references", "page": "page", "pages": "page",
    "toc": "toc", "div:toc": "toc", "div:annex": "annex", "div:funding": "funding", "div:availability": "availability",
    "div:acknowledgement": "acknowledgement", "div:acknowledgements": "acknowledgement",
    "div:acknowledgment": "acknowledgement", "div:acknowledgments": "acknowledgement", "note:footnote": "footnote",
    "note:foot": "footnote", "note:headnote": "headnote", "note:head": "headnote", "note:margin": "marginnote",
}  # fmt: skip
FIELDS = {"header": HEADER, "segmentation": SEGMENTATION}
OTHER = "other"

Field = tuple[str, int]  # its name, and its number in the document
Rows = list[list[str]]


class Clone:
    """Files of the newest commit of a repository."""

    def __init__(self, folder: Path):
        self._git = ["git", "-C", str(folder)]
        self.commit = self._output("rev-parse", "HEAD").decode().strip()

    def _output(self, *arguments: str) -> bytes:
        return subprocess.run([*self._git, *arguments], stdout=subprocess.PIPE, check=True).stdout

    def paths(self) -> list[str]:
        """Return all paths of the commit."""
        return self._output("ls-tree", "-r", "-z", "--name-only", "HEAD").decode().rstrip("\0").split("\0")

    def files(self, folder: str) -> dict[str, bytes]:
        """Contents by name; files that a partial clone lacks are left out."""
        listed = self._output("ls-tree", "-z", f"HEAD:{folder}").decode().split("\0")
        entries = [line.split(None, 3) for line in listed if line]
        blobs = [(number, name) for _, kind, number, name in entries if kind == "blob"]
        wanted = "".join(f"{number}\n" for number, _ in blobs).encode()
        whole = subprocess.run(
            [*self._git, "cat-file", "--batch"], input=wanted, stdout=subprocess.PIPE, check=True
        ).stdout
        found, at = {}, 0
        for _, name in blobs:
            end = whole.index(b"\n", at)
            head = whole[at:end].split()
            at = end + 1
            if head[1] != b"missing":
                found[name] = whole[at : at + int(head[2])]
                at += int(head[2]) + 1
        return found


def text_pieces(tei: str, fields: dict[str, str]) -> Iterator[tuple[str, Field]]:
    """Yield the text of a document piece by piece with its field; a piece "\\n" ends a line."""
    stack: list[tuple[str, Field]] = []
    number = 0
    for piece in re.findall(r"<[^>]*>|[^<]+", tei[max(tei.find("<text"), 0) :]):
        tag = re.match(r"<(/?)([A-Za-z]+)", piece)
        if tag is None:
            if not piece.startswith("<"):
                yield re.sub(r"\s+", " ", unescape(piece)), stack[-1][1] if stack else (OTHER, 0)
        elif tag[2] in ("lb", "pb"):
            yield "\n", (OTHER, 0)
        elif tag[1]:
            if any(name == tag[2] for name, _ in stack):
                while stack.pop()[0] != tag[2]:
                    pass
        elif not piece.endswith("/>"):
            kind = re.search(r'\b(?:type|place)\s*=\s*"([^"]*)"', piece)
            field = fields.get(f"{tag[2]}:{kind[1]}" if kind else "") or fields.get(tag[2])
            number += 1
            stack.append((tag[2], (field, number) if field else stack[-1][1] if stack else (OTHER, 0)))


def token_fields(rows: Rows, tei: str) -> list[Field | None]:
    """Fields of tokens, found one behind the other in the text without its white space."""
    chars = [(c, field) for piece, field in text_pieces(tei, HEADER) for c in piece if not c.isspace()]
    text = "".join(c for c, _ in chars)
    found: list[Field | None] = []
    at = 0
    for row in rows:
        place = text.find(row[0], at, at + len(row[0]) + 40)
        found.append(chars[place][1] if place >= 0 else None)
        at = place + len(row[0]) if place >= 0 else at
    return found


def line_fields(rows: Rows, tei: str) -> list[Field | None]:
    """Fields of lines by their first words: of each line of the text, and of each field within it."""
    lines: list[tuple[str, Field]] = []
    new, before = True, None
    for piece, field in text_pieces(tei, SEGMENTATION):
        if piece == "\n":
            new = True
        elif piece.strip():
            if new or field != before:
                lines.append((piece.split(None, 1)[0], field))
            new, before = False, field
    found: list[Field | None] = []
    at = 0
    for row in rows:
        ahead = range(at, min(at + AHEAD, len(lines)))
        place = next((k for k in ahead if lines[k][0] == row[0]), None)
        if place is None:
            place = next((k for k in ahead if lines[k][0].startswith(row[0]) or row[0].startswith(lines[k][0])), None)
        found.append(None if place is None else lines[place][1])
        at = at if place is None else place + 1
    return found


def documents(clone: Clone, model: str) -> Iterator[Rows]:
    """Yield documents with labels as their last column."""
    folder = f"{DATASET}/{model}/corpus"
    raws, teis = clone.files(f"{folder}/raw"), clone.files(f"{folder}/tei")
    for name, raw in sorted(raws.items()):
        tei = teis.get(f"{name}.tei.xml")
        rows = [
            re.split(r"[ \t]+", line.strip()) for line in raw.decode("utf-8", "replace").split("\n") if line.strip()
        ]
        if tei is None or not rows or any(len(row) != len(rows[0]) for row in rows):
            continue
        found = (token_fields if model == "header" else line_fields)(rows, tei.decode("utf-8", "replace"))
        if found.count(None) > MOST_LOST * len(rows):
            continue
        labels: list[str] = []
        before: Field = ("", -1)
        for field in found:
            own = field or (before if labels else (OTHER, 0))
            begins = own != before and (own[0] != OTHER or model == "header")
            labels.append(("I-" if begins else "") + f"<{own[0]}>")
            before = own
        yield [[*row, label] for row, label in zip(rows, labels, strict=True)]


def patterns(template: str) -> str:
    """A template in capitals as patterns of Wapiti, which reads both alike."""
    return "".join(line[:1].lower() + line[1:] + "\n" for line in template.split("\n") if line[:1] in ("U", "B"))


def write(clone: Clone, model: str, out: Path, most: int | None) -> dict[str, object]:
    found = list(documents(clone, model))
    columns = max({len(rows[0]) for rows in found}, key=[len(rows[0]) for rows in found].count)
    found = [rows for rows in found if len(rows[0]) == columns]
    random.Random(0).shuffle(found)
    found = found[:most]
    test = len(found) // 5
    figures: dict[str, object] = {"commit": clone.commit, "columns": columns}
    for part, own in (("test", found[:test]), ("train", found[test:])):
        blocks = ("".join(" ".join(row) + "\n" for row in rows) + "\n" for rows in own)
        (out / f"{model}.{part}.conll").write_text("".join(blocks), encoding="utf-8")
        labels = len({row[-1] for rows in own for row in rows})
        figures[part] = {"documents": len(own), "positions": sum(map(len, own)), "labels": labels}
    template = clone.files(f"{DATASET}/{model}/crfpp-templates")[f"{model}.template"].decode()
    (out / f"{model}.patterns").write_text(patterns(template), encoding="utf-8")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("clone", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--documents", type=int, help="of each corpus, at most; default: all")
    run = parser.parse_args()
    run.out.mkdir(parents=True, exist_ok=True)
    clone = Clone(run.clone)
    figures = {model: write(clone, model, run.out, run.documents) for model in FIELDS}
    (run.out / "corpus.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
