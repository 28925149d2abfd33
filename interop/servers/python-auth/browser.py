#!/usr/bin/env python3
"""The browser of somebody who says yes to everything: goes to a page, and wherever it leads."""

import sys
import urllib.request

PATIENCE = 10

# Whatever stands between this machine and others has no part in this.
straight = urllib.request.build_opener(urllib.request.ProxyHandler({}))
with straight.open(sys.argv[1], timeout=PATIENCE) as page:
    page.read()
