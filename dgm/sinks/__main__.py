"""``python -m dgm.sinks``: the companion process of a session."""

import sys

from dgm.sinks.companion import main

sys.exit(main())
