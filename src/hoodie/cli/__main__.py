"""`python -m hoodie.cli`."""

from hoodie.cli.main import main

raise SystemExit(main())
