"""``python -m flake8_gpu_training`` is ``gpu-lint``."""

import sys

from flake8_gpu_training.cli import main

sys.exit(main())
