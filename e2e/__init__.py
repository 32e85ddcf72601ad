"""The playground in a real browser against a real `plait serve`: what a person can rely on."""
