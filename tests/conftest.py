"""One thread for each test process: two processes of two threads each crawl on two cores."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
