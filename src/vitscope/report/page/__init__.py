"""The study as a page: one HTML file that holds everything, opens offline, and asks no server for anything.

Python chooses and packs what is shown (`payload`), Jinja writes the text, small scripts draw the charts. Imports study,
tasks, attention and the shared modules of the package.
"""

from vitscope.report.page.write import write_page

__all__ = ["write_page"]
