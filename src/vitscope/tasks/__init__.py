"""WHY Vision Transformers are used: k-NN, linear probe, retrieval, video segmentation and keypoints, at every layer.

Each task is one file that reads in the same order: protocol, scores, `evaluate` on features, the analysis. All layers
come from one extraction. Imports features, models, data and core.
"""
