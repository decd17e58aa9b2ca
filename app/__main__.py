"""`python -m app` is `wakebell`."""

import sys

from app.cli import main

sys.exit(main())
