"""`python -m resmlp_mt.cli` is `resmlp-mt`."""

import sys

from resmlp_mt.cli import main

sys.exit(main())
