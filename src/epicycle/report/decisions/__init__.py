"""Pages of decisions: plans of decision processes, and agents that learn by acting."""
