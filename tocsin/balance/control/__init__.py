"""When to balance, and which plans to let through: the controller, its triggers and thresholds, its judgement."""
