from ._lookup import ItemRows, LabelScorer, ScoredItems
from .attribute_labels import AttributeLabeller, AttributeSequences, label_scorer
from .crfsuite_models import CrfsuiteModel, crfsuite_header, read_crfsuite, write_crfsuite
from .foreign import ForeignModel
from .model_export import crfsuite_of, export_model, program_of
from .model_import import import_model, read_foreign, training_configuration

PROGRAMS: dict[str, str]

__all__ = [
    "AttributeLabeller",
    "AttributeSequences",
    "CrfsuiteModel",
    "ForeignModel",
    "ItemRows",
    "LabelScorer",
    "ScoredItems",
    "crfsuite_header",
    "crfsuite_of",
    "export_model",
    "import_model",
    "label_scorer",
    "program_of",
    "read_crfsuite",
    "read_foreign",
    "training_configuration",
    "write_crfsuite",
]
