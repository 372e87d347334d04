"""The thin client's file: ``python -I -S client.py bridge AGENT``. All it does is in ``thin``, which is kept compiled."""

import sys

sys.path.append(__file__[: -len("/hookturn/serve/client.py")])

from hookturn.serve.thin import main

if __name__ == "__main__":
    main()
