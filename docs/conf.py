"""Sphinx: one build makes the guide, the pages of the methods, the gallery and the reference, with no network."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from figure_style import STYLE

import epicycle

project = "epicycle"
author = "The epicycle developers"
copyright = "The epicycle developers. BSD-3-Clause"
version = release = epicycle.__version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas are typeset by the copy that the pages bring with them
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "reference",
    "tables",
]
exclude_patterns = ["_build", "examples"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:obj", r"\w+"),  # "See Also" may name what scikit-learn has
    ("py:.*", r"sklearn\..*"),  # whose documentation is not at hand in a build without network
    ("py:mod", r"epicycle\..*"),  # docstrings may point readers of the code to a private module
]
default_role = "literal"
smartquotes = False

# ---------------------------------------------------------------- reference

autosummary_generate = True
autodoc_typehints = "none"  # types stand in the docstrings, in words
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False  # the template lists them
numpydoc_xref_param_type = False

# ---------------------------------------------------------------- figures and gallery

plot_rcparams = {**STYLE, "savefig.bbox": None}
plot_apply_rcparams = True
plot_formats = [("png", 160)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_include_source = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "backreferences_dir": "auto_examples/backreferences",
    "doc_module": ("epicycle",),
    "reference_url": {"epicycle": None},
    "within_subsection_order": "gallery_order.key",
    "reset_modules": ("figure_style.reset",),
    "image_srcset": ["2x"],
    "matplotlib_animations": False,
    "min_reported_time": 5,
    "download_all_examples": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "capture_repr": (),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}

# ---------------------------------------------------------------- HTML

html_theme = "pydata_sphinx_theme"
html_title = f"epicycle {version}"
html_static_path = ["_static"]
html_css_files = ["epicycle.css"]
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "epicycle", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "architecture": [], "glossary": []}
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
