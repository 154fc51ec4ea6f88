from .items import ItemSequence
from .tagger import ParsedDump, Tagger
from .trainer import BaseTrainer, CRFSuiteError, Trainer

CRFSUITE_VERSION: str

__all__ = ["CRFSUITE_VERSION", "BaseTrainer", "CRFSuiteError", "ItemSequence", "ParsedDump", "Tagger", "Trainer"]
