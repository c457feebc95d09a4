"""Certificates: hints for the independent checker `tracr_check`, its verdicts, and probes of backends.

hints.py         the hints: of which variable each written dimension is a function
certificate.py   `Certificate`: the checker's verdict on a model
certifying.py    `certify`: writes hints, runs the checker, keeps the verdict
saving.py        saves certificates with models, and reads them back
backends.py      products and attention in numpy, the C kernel, torch, JAX and onnxruntime
arithmetic_probe.py
                 whether a backend does what an arithmetic assumes
"""

from tracr.certificate.arithmetic_probe import Probe, probe
from tracr.certificate.certificate import Certificate

__all__ = ["Certificate", "Probe", "probe"]
