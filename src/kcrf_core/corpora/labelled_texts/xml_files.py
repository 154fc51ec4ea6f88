"""XML of AnyStyle and of parserator (usaddress, probablepeople): elements of the root are sequences, theirs are parts.

    <dataset><sequence><author>Heidegger M.,</author> <date>1927.</date></sequence></dataset>

The file is read by Python's parser as it comes, and nothing is kept but the sequence that is read. White space is one
space. Declarations of entities and other files are refused, and so are documents that are deep or large.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.parsers import expat

from ...errors import DataError
from ...files import text_ending
from ...system import PAUSE, Pause
from ..layout import NAMES, SPAN_LABELS
from .documents import LARGEST_DOCUMENT, Chunks, Document, DocumentReader, Findings, Span

PART, LABEL, SCHEME = "part", "label", "span-labels"  # an element for any label, its attribute, and one of the root
_SPACE = re.compile(r"\s+")
_SEQUENCE, _PART, _DEEPEST = 2, 3, 4  # levels; the root has 1, and elements in parts are markup


class _Sequences:
    """Sequences of a file, by the events of its parser."""

    def __init__(self, name: str, findings: Findings):
        self.done: list[Document] = []
        self._name, self._findings = name, findings
        self._level, self._line, self._span_labels = 0, 0, NAMES
        self._text, self._size, self._spans = list[str](), 0, list[Span]()
        self.parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._document_type

    def error(self, message: str) -> DataError:
        return DataError(message, self._name, self.parser.CurrentLineNumber)

    def _document_type(self, name: str, system: str | None, public: str | None, declares: int) -> None:
        if system or public or declares:  # entities, too, can stand nowhere else
            raise self.error("a DOCTYPE with declarations or another file, which are not read: remove it")

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        self._level += 1
        if self._level == 1 and attributes.get(SCHEME) in SPAN_LABELS:
            self._span_labels = attributes[SCHEME]
        elif self._level == _SEQUENCE:
            self._line, self._size = self.parser.CurrentLineNumber, 0
            self._text.clear()
            self._spans.clear()
        elif self._level == _PART:
            label = attributes.get(LABEL, element) if element == PART else element
            self._spans.append(Span(self._size, self._size, label))
        elif self._level == _DEEPEST:
            self._findings["markup"] += 1
        elif self._level > _DEEPEST:
            raise self.error(f"<{element}> is too deep: expected labelled parts in sequences, and those in one element")

    def _characters(self, text: str) -> None:
        if self._level < _SEQUENCE:
            if text.strip():
                raise self.error("text outside of all sequences: expected labelled parts in sequences")
            return
        text = _SPACE.sub(" ", text)
        if text.startswith(" ") and (not self._text or self._text[-1].endswith(" ")):
            text = text[1:]
        if text:
            self._text.append(text)
            self._size += len(text)
        if self._size > LARGEST_DOCUMENT:
            raise self.error("a sequence of more than 64 MiB: expected many sequences in one element")

    def _end(self, element: str) -> None:
        if self._level == _PART:
            self._spans[-1] = self._spans[-1]._replace(end=self._size)
        elif self._level == _SEQUENCE:
            spans = [span for span in self._spans if span.begin < span.end]
            self.done.append(
                Document("".join(self._text).rstrip(" "), self._line, spans, span_labels=self._span_labels)
            )
        self._level -= 1


def read_xml(chunks: Chunks, name: str, findings: Findings) -> Iterator[Document | Pause]:
    """Yield the sequences of a file."""
    sequences, fed = _Sequences(name, findings), 0
    parser = sequences.parser
    try:
        for chunk in chunks:
            if chunk is PAUSE:
                yield PAUSE
                continue
            parser.Parse(chunk, False)
            fed += len(chunk)
            if fed - parser.CurrentByteIndex > LARGEST_DOCUMENT:
                raise sequences.error("a tag of more than 64 MiB")
            yield from sequences.done
            sequences.done.clear()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        message, settings = f"no well-formed XML: {expat.ErrorString(error.code)}", []
        if not text_ending(name):
            message, settings = f"{message}; if it has columns, give the separator, as 'space'", ["separator"]
        raise DataError(message, name, error.lineno, settings=settings) from None
    except DataError:
        raise
    except (LookupError, ValueError) as error:
        raise DataError(f"XML in an encoding that is not read ({error}): convert it to UTF-8", name, 1) from None
    yield from sequences.done


XML = DocumentReader(read_xml)
