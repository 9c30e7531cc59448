"""Whom to cite: the software, the paper, and those who taught the models of a study this way first, as BibTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vitscope import __version__
from vitscope.core.results import Results

SOFTWARE = f"""@software{{vitscope,
  title = {{vitscope: see what a Vision Transformer became through the way it was taught}},
  author = {{{{The vitscope contributors}}}},
  version = {{{__version__}}}
}}"""


def _paper(key: str, authors: str, title: str, where: str, year: int) -> str:
    journal = where.startswith(("Transactions", "Image and", "arXiv"))
    fields = {"author": authors, "title": f"{{{title}}}", "journal" if journal else "booktitle": where, "year": year}
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@{'article' if journal else 'inproceedings'}{{{key},\n{lines}\n}}"


_CVPR = "IEEE/CVF Conference on Computer Vision and Pattern Recognition (CVPR)"
_ICCV = "IEEE/CVF International Conference on Computer Vision (ICCV)"
_ICLR = "International Conference on Learning Representations (ICLR)"
_ICML = "International Conference on Machine Learning (ICML)"
_ECCV = "European Conference on Computer Vision (ECCV)"
_TMLR = "Transactions on Machine Learning Research"
STUDY = _paper(
    "walmer2023teaching",
    "Walmer, Matthew and Suri, Saksham and Gupta, Kamal and Shrivastava, Abhinav",
    "Teaching Matters: Investigating the Role of Supervision in Vision Transformers",
    _CVPR,
    2023,
)
VIT = _paper(
    "dosovitskiy2021image",
    "Dosovitskiy, Alexey and Beyer, Lucas and Kolesnikov, Alexander and others",
    "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale",
    _ICLR,
    2021,
)
# What names, architectures and teachings look like -> who published it. All that fit are cited.
PUBLISHED: tuple[tuple[str, str], ...] = (
    (r"\bfs-[sbl]\d+|augreg", _paper(
        "steiner2022train", "Steiner, Andreas and Kolesnikov, Alexander and Zhai, Xiaohua and Wightman, Ross and "
        "Uszkoreit, Jakob and Beyer, Lucas",
        "How to train your ViT? Data, Augmentation, and Regularization in Vision Transformers", _TMLR, 2022)),
    (r"\bclip\b|_clip_", _paper(
        "radford2021learning", "Radford, Alec and Kim, Jong Wook and Hallacy, Chris and others",
        "Learning Transferable Visual Models From Natural Language Supervision", _ICML, 2021)),
    (r"\bdino\b", _paper(
        "caron2021emerging", "Caron, Mathilde and Touvron, Hugo and Misra, Ishan and J{\\'e}gou, Herv{\\'e} and "
        "Mairal, Julien and Bojanowski, Piotr and Joulin, Armand",
        "Emerging Properties in Self-Supervised Vision Transformers", _ICCV, 2021)),
    (r"dinov2", _paper(
        "oquab2024dinov2", "Oquab, Maxime and Darcet, Timoth{\\'e}e and Moutakanni, Th{\\'e}o and others",
        "DINOv2: Learning Robust Visual Features without Supervision", _TMLR, 2024)),
    (r"dinov3", _paper(
        "simeoni2025dinov3", "Sim{\\'e}oni, Oriane and Vo, Huy V. and Seitzer, Maximilian and others",
        "DINOv3", "arXiv preprint arXiv:2508.10104", 2025)),
    (r"reg4_dinov2|_reg\d", _paper(
        "darcet2024vision", "Darcet, Timoth{\\'e}e and Oquab, Maxime and Mairal, Julien and Bojanowski, Piotr",
        "Vision Transformers Need Registers", _ICLR, 2024)),
    (r"\bmoco\b", _paper(
        "chen2021empirical", "Chen, Xinlei and Xie, Saining and He, Kaiming",
        "An Empirical Study of Training Self-Supervised Vision Transformers", _ICCV, 2021)),
    (r"\bmae\b", _paper(
        "he2022masked", "He, Kaiming and Chen, Xinlei and Xie, Saining and Li, Yanghao and Doll{\\'a}r, Piotr and "
        "Girshick, Ross",
        "Masked Autoencoders Are Scalable Vision Learners", _CVPR, 2022)),
    (r"\bbeit\b", _paper(
        "bao2022beit", "Bao, Hangbo and Dong, Li and Piao, Songhao and Wei, Furu",
        "BEiT: BERT Pre-Training of Image Transformers", _ICLR, 2022)),
    (r"siglip", _paper(
        "zhai2023sigmoid", "Zhai, Xiaohua and Mustafa, Basil and Kolesnikov, Alexander and Beyer, Lucas",
        "Sigmoid Loss for Language Image Pre-Training", _ICCV, 2023)),
    (r"siglip2|_siglip_\d+\.v2", _paper(
        "tschannen2025siglip2", "Tschannen, Michael and Gritsenko, Alexey and Wang, Xiao and others",
        "SigLIP 2: Multilingual Vision-Language Encoders with Improved Semantic Understanding, Localization, and Dense "
        "Features", "arXiv preprint arXiv:2502.14786", 2025)),
    (r"_pe_core_|\bpe-[bl]\d", _paper(
        "bolya2025perception", "Bolya, Daniel and Huang, Po-Yao and Sun, Peize and others",
        "Perception Encoder: The best visual embeddings are not at the output of the network",
        "Advances in Neural Information Processing Systems (NeurIPS)", 2025)),
    (r"aimv2", _paper(
        "fini2025multimodal", "Fini, Enrico and Shukor, Mustafa and Li, Xiujun and others",
        "Multimodal Autoregressive Pre-training of Large Vision Encoders", _CVPR, 2025)),
    (r"eva02", _paper(
        "fang2024eva02", "Fang, Yuxin and Sun, Quan and Wang, Xinggang and Huang, Tiejun and Wang, Xinlong and "
        "Cao, Yue",
        "EVA-02: A Visual Representation for Neon Genesis", "Image and Vision Computing", 2024)),
    (r"ijepa", _paper(
        "assran2023self", "Assran, Mahmoud and Duval, Quentin and Misra, Ishan and Bojanowski, Piotr and "
        "Vincent, Pascal and Rabbat, Michael and LeCun, Yann and Ballas, Nicolas",
        "Self-Supervised Learning from Images with a Joint-Embedding Predictive Architecture", _CVPR, 2023)),
    (r"\bdeit3", _paper(
        "touvron2022deit", "Touvron, Hugo and Cord, Matthieu and J{\\'e}gou, Herv{\\'e}",
        "DeiT III: Revenge of the ViT", _ECCV, 2022)),
    (r"\bdeit[_-]", _paper(
        "touvron2021training", "Touvron, Hugo and Cord, Matthieu and Douze, Matthijs and Massa, Francisco and "
        "Sablayrolles, Alexandre and J{\\'e}gou, Herv{\\'e}",
        "Training data-efficient image transformers \\& distillation through attention", _ICML, 2021)),
)  # fmt: skip


def bibtex(results: Results) -> str:
    """Entries for everything that a study of these results rests on."""
    return "\n\n".join([SOFTWARE, STUDY, VIT, *_models(results)])


def _models(results: Results) -> Sequence[str]:
    taught = results.table.select("model", "teaching").unique(maintain_order=True).rows()
    named = [(entry.get("model", ""), entry.get("architecture", "")) for entry in results.provenance]
    said = " ".join(str(part) for pair in (*taught, *named) for part in pair).lower()
    return [entry for pattern, entry in PUBLISHED if re.search(pattern, said)]
