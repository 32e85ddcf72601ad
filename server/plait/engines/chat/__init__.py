"""What all chat engines share: prompts, templates, and text out of tokens."""
