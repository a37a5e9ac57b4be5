"""Settings of the whole suite."""

import os

from hypothesis import settings

# On main the generated examples are the same every time, so that a change is judged by itself;
# a developer's run draws new ones.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
