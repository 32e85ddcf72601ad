"""Who may come in: tokens and where they are kept, tickets, apps with their rights."""
