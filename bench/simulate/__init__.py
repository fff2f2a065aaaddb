"""Large tables and large batches on paper: plans of the real planner over metadata alone, and what they cost."""
