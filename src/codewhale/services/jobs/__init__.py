"""Shell jobs: commands that outlive the call that began them, owned by their session and dead with the process."""

from codewhale.services.jobs.job import JobInput, JobReading, JobSpec, JobView
from codewhale.services.jobs.service import USER, ShellJobs

__all__ = ["USER", "JobInput", "JobReading", "JobSpec", "JobView", "ShellJobs"]
