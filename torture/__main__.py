"""`python -m torture crash|storm|soak`: what `make torture ARGS=...` runs."""

from torture.run import main

raise SystemExit(main())
