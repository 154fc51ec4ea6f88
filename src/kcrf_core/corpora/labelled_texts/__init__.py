"""Labelled texts (XML, JSON, brat, .ttx) become rows of columns: a `DocumentReader` for each kind of file."""
