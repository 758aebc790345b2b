"""The WSGI application that gunicorn serves."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from evalsite.secret_key import require_lasting_key

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")

require_lasting_key()
application = get_wsgi_application()
