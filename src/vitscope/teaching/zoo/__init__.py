"""The zoo: six networks of one architecture, taught on the same images, differing only in the teaching.

python -m vitscope.teaching.zoo train      # any number of times and processes; goes on where it stopped
python -m vitscope.teaching.zoo status     # how far each one is, and k-NN of each layer
python -m vitscope.teaching.zoo ship       # cool down a copy of each and write its model card
python -m vitscope.teaching.zoo exam       # what the shipped ones can do on held-out renders
"""
