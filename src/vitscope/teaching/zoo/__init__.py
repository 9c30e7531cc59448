"""The zoo: six networks of one architecture, taught on the same images, differing only in the teaching."""
