#!/usr/bin/env python3
"""A browser whose user consents to everything: opens a page and follows its redirects."""

import sys
import urllib.request

PATIENCE = 10

# Whatever stands between this machine and others has no part in this.
straight = urllib.request.build_opener(urllib.request.ProxyHandler({}))
with straight.open(sys.argv[1], timeout=PATIENCE) as page:
    page.read()
