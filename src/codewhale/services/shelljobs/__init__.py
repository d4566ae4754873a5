"""Shell jobs: commands that outlive the call that began them, owned by their session and dead with the process."""

from codewhale.services.shelljobs.job import Input, JobSpec, JobView, Reading
from codewhale.services.shelljobs.service import PERSON, ShellJobs

__all__ = ["PERSON", "Input", "JobSpec", "JobView", "Reading", "ShellJobs"]
