"""One file or folder for each figure or table; each writes its rows and puts our numbers beside the published ones.

A folder has ``run`` and ``report``, and ``python -m experiments.<folder> run | report`` starts them. Rows are kept in
``results/<folder>/<preset>``.
"""
