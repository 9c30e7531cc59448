"""WHY Vision Transformers are used: k-NN, linear probe, retrieval, video segmentation and keypoints, at every layer.

Each task is one file that reads in the same order: protocol, config, scores, `evaluate` on features, `run` on a model.
All layers come from one extraction. May import models, data, features and the streaming statistics.
"""
