from .crfsuite_models import CrfsuiteModel, crfsuite_header, read_crfsuite, write_crfsuite
from .foreign import ForeignModel
from .model_export import crfsuite_of, export_model, program_of
from .model_import import import_model, read_foreign, training_configuration

PROGRAMS: dict[str, str]

__all__ = [
    "CrfsuiteModel",
    "ForeignModel",
    "crfsuite_header",
    "crfsuite_of",
    "export_model",
    "import_model",
    "program_of",
    "read_crfsuite",
    "read_foreign",
    "training_configuration",
    "write_crfsuite",
]
