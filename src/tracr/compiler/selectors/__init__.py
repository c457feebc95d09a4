"""How selectors become heads: conjunctions, head plans, splitting."""
