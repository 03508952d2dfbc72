"""Compile every template; run as a process of its own, since it needs Django set up."""

from __future__ import annotations

import os
import sys

import django
from django.template import TemplateSyntaxError
from django.template.loader import get_template

from checks.files import ROOT, template_files


def main() -> int:
    """Print each template that does not compile."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "agentops.settings"
    django.setup()
    bad = 0
    for path in template_files(ROOT):
        name = path.as_posix().rpartition("/templates/")[2]
        try:
            get_template(name)
        except (TemplateSyntaxError, UnicodeDecodeError) as error:
            bad += 1
            print(f"{path.relative_to(ROOT)}: {error}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
