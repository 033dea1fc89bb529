"""What the experiments of a publication have in common.

A publication's own modules list cells, measures, pictures and statements; a study makes of them
runs, rows of results.json and a page.
"""
