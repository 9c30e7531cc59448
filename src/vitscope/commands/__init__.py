"""The commands of `vitscope`, one file each: they read arguments, call the library, and print where things are."""
