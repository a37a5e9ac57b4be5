"""``python -m report_builder``."""

import sys

from report_builder.cli import main

sys.exit(main())
