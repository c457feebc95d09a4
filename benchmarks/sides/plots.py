def draw(results, out):
    pass
