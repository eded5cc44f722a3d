"""How experience becomes a candidate. Recipes come with the learning loop."""
