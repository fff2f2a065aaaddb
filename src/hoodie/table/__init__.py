"""What a table is on disk: its settings, its state at one age, how it is made, and what another version needs."""
