"""The jobs of the pipeline, each a function: `pipeline.jobs.lag(...)` is what `horolog pipeline lag` runs.

A module for each job has the function, named as the module, and what the command line needs: `add_arguments` and `run`.
`common` has what jobs share: arguments, the Spark session, progress and the closing summary.
"""
