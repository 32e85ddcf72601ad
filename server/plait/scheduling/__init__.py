"""Who may run: pure admission and budgets, and the scheduler that applies their decisions."""
