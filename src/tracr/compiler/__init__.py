"""The compiler: RASP to transformer weights. `pipeline.py` lists the passes in order."""
