"""From expressions to tables: the passes `fuse_expressions`, `trace` and `infer`, and the rules of `infer`."""
