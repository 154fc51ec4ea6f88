"""kcrf_core: kernelised conditional random fields for sequences, as a library.

    corpus = read_corpus("data.conll")
    encoding, dataset = fit_encoding(parse_config({}), corpus)
    with Workers() as workers:
        model, report = train(encoding, dataset, parse_config({}), workers=workers)
    labels = model.tag_corpus(corpus)

Names are imported from the modules that define them (`kcrf_core.formats`, `.config_reader`, `.encoding`,
`.training`, `.model`), so that importing the package itself costs nothing.
"""

from ._version import __version__

__all__ = ["__version__"]
