"""Models of CRFsuite, CRF++ and Wapiti: read as models of ours, and written for these programs and for kcrf-tag."""

from typing import TYPE_CHECKING

from .._lazy import lazy

# Programs that models are written for, by the words for them.
PROGRAMS = {"crfsuite": "CRFsuite", "crf++": "CRF++", "wapiti": "Wapiti", "runtime": "kcrf-tag"}

if TYPE_CHECKING:
    from ._crfsuite import read_crfsuite_parts
    from .crfsuite_models import CrfsuiteModel, crfsuite_header, read_crfsuite, write_crfsuite
    from .foreign import ForeignModel
    from .model_export import crfsuite_of, export_model, program_of
    from .model_import import import_model, load_start, read_foreign, training_configuration
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
