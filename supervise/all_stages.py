"""The four programs in one process: the only module that imports more than one stage. The warm process uses it."""

from contract import names
from stages.extractor import __main__ as extractor
from stages.fetcher import __main__ as fetcher
from stages.scheduler import __main__ as scheduler
from stages.verifier import __main__ as verifier

MAINS = {
    names.SCHEDULER: scheduler.main,
    names.FETCHER: fetcher.main,
    names.EXTRACTOR: extractor.main,
    names.VERIFIER: verifier.main,
}
