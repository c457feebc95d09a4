"""RASP: the language, its interpreter and a library of programs."""
