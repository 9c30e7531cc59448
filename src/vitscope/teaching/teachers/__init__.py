"""The six teachers, one file each, and the small networks and tricks that they use."""
