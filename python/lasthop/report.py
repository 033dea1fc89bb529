"""Reports: one HTML file each, with everything in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lasthop._lasthop import __version__

FOLDER = Path(__file__).parent / "templates"


def render(template: str, values: Mapping[str, Any]) -> str:
    """The page that a template makes of some values."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(version=__version__, **values)
