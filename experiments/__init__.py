"""One file per figure or table; each writes its rows and puts our numbers beside the published ones."""
