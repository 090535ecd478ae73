"""The passes: one module each, one public function of the same name. Their order stands in `planner.optimizer`."""
