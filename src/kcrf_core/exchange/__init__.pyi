from ._crfsuite import read_crfsuite_parts as read_crfsuite_parts
from .crfsuite_models import (
    CrfsuiteModel as CrfsuiteModel,
    crfsuite_header as crfsuite_header,
    read_crfsuite as read_crfsuite,
    write_crfsuite as write_crfsuite,
)
from .foreign import ForeignModel as ForeignModel
from .model_export import crfsuite_of as crfsuite_of, export_model as export_model, program_of as program_of
from .model_import import (
    import_model as import_model,
    load_start as load_start,
    read_foreign as read_foreign,
    training_configuration as training_configuration,
)

PROGRAMS: dict[str, str]
