#!/usr/bin/env python3
"""Commands of AgentOps; `manage.py up` starts everything, `manage.py help` lists the others."""

import sys

if sys.version_info < (3, 11):  # before any import that an older Python cannot even parse
    sys.exit("agentops: needs Python 3.11 or newer, this is %d.%d" % sys.version_info[:2])


def main() -> None:
    """Read the settings first, so that a wrong one is a line and not a traceback."""
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit("agentops: Django is not installed for this Python; run `make setup` and use .venv/bin/python")
    from agentops.start import settings_or_exit

    settings_or_exit()
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
