"""The jobs of the pipeline, each a function: `pipeline.jobs.lag(...)` is what `horolog pipeline lag` runs.

A module for each job has the function, named as the module, and what the command line needs: `add_arguments` and `run`.
`common` has what jobs share: arguments, the Spark session, progress and the closing summary; `lanes` sends rows so that a killed run
can be resumed, and `loading` first finds out what the topic would do with them.
"""

from horolog.pipeline.jobs.archive import archive
from horolog.pipeline.jobs.archive_form import Form
from horolog.pipeline.jobs.bootstrap import bootstrap
from horolog.pipeline.jobs.expire import expire
from horolog.pipeline.jobs.lag import lag
from horolog.pipeline.jobs.loading import Settings
from horolog.pipeline.jobs.mirror import mirror
from horolog.pipeline.jobs.pack import pack
from horolog.pipeline.jobs.profile import profile
from horolog.pipeline.jobs.replay import replay
from horolog.pipeline.jobs.vacuum import vacuum

__all__ = [
    "Form",
    "Settings",
    "archive",
    "bootstrap",
    "command",
    "expire",
    "lag",
    "mirror",
    "pack",
    "profile",
    "replay",
    "vacuum",
]
