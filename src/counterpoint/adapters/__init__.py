"""Other people's libraries, one file each; the extra that installs a library has the file's name."""
