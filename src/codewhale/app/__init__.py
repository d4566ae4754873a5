"""Where concrete things meet: explicit construction, the client, the doctor."""
