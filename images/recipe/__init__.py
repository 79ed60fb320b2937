"""What an image is to be: recipes, their fields and features, how they inherit, and lockfiles."""
